import { beforeAll, describe, expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { newMaster, newParty, type Party } from '../support/parties.ts';
import { done, type Fields, shape } from '../support/parties-rest.ts';

/** Without keys: what is asked here is what is kept of grants, not who signed them. */
const { base, order } = await nodeWithOrder({ keyed: false });
let friend: Party;
let other: Party;
let grants: { first: Fields; second: Fields; third: Fields; revokedAt: string };
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

const get = (path: string, by: Party = order.buyer) => done(base, 'GET', path, by);
const post = async (path: string, body: Fields) => (await done(base, 'POST', path, order.buyer, body)).body;

beforeAll(async () => {
  [friend, other] = [await newParty(base), await newParty(base)];
  const ledger = { ledger_id: order.ledgerId };
  const first = await post('/v1/delegation/ledger', { ...ledger, delegate_actor_id: friend.actorId, role: 'AUDITOR' });
  await pause();
  const second = await post('/v1/delegation/ledger', {
    ...ledger,
    delegate_actor_id: friend.actorId,
    role: 'OPS',
    permissions: { note: 'x' },
  });
  await pause();
  const third = await post('/v1/delegation/ledger', { ...ledger, delegate_actor_id: other.actorId, role: 'AUDITOR' });
  await pause();
  const body = { ...ledger, delegate_actor_id: other.actorId };
  const end = await done(base, 'PATCH', '/v1/delegation/ledger', order.supplier, body);
  grants = { first, second, third, revokedAt: end.text('revoked_at') };
});

const ids = (rows: readonly Fields[]) => rows.map((row) => row.link_id);

describe('member lists', () => {
  test('show the held grants, and with include_revoked all grants in the order of granting', async () => {
    const path = `/v1/delegation/ledger?ledger_id=${order.ledgerId}`;
    const list = await get(path);
    expect(list.body).toMatchObject({ ledger_id: order.ledgerId, count: 1 });
    expect(list.rows('members')).toEqual([
      expect.objectContaining({
        link_id: grants.second.link_id,
        delegate_actor_id: friend.actorId,
        role: 'OPS',
        is_active: true,
      }),
    ]);
    const all = await get(`${path}&include_revoked=true`);
    expect(ids(all.rows('members'))).toEqual(ids([grants.first, grants.second, grants.third]));
    expect(all.rows('members').map(({ is_active }) => is_active)).toEqual([false, true, false]);
    expect(all.rows('members').map(({ revoked_at }) => revoked_at)).toEqual([
      grants.second.granted_at,
      null,
      grants.revokedAt,
    ]);
    expect(ids((await get(`${path}&include_revoked=true&limit=1&offset=1`)).rows('members'))).toEqual([
      grants.second.link_id,
    ]);
  });
});

describe('snapshots', () => {
  const at = (time: unknown) =>
    get(`/v1/delegation/snapshot?ledger_id=${order.ledgerId}&at=${encodeURIComponent(String(time))}`);

  test('show the grants that were held at a time', async () => {
    const item = (grant: Fields, role: string, permissions: Fields) => ({
      link_id: grant.link_id,
      delegate_actor_id: grant.delegate_actor_id,
      role,
      permissions,
      is_active: true,
      granted_at: grant.granted_at,
      revoked_at: null,
      expires_at: null,
      granted_by_actor_id: order.buyer.actorId,
      event_id: shape.uuid,
    });
    const first = item(grants.first, 'AUDITOR', {});
    const second = item(grants.second, 'OPS', { note: 'x' });
    const third = item(grants.third, 'AUDITOR', {});
    const shown = async (time: unknown) => (await at(time)).body;
    expect(await shown(grants.first.granted_at)).toEqual({
      scope: 'ledger_id',
      scope_id: order.ledgerId,
      snapshot_at: grants.first.granted_at,
      count: 1,
      delegations: [first],
    });
    const justBefore = (time: unknown) => new Date(Date.parse(String(time)) - 1).toISOString();
    expect((await shown('2020-01-01T00:00:00Z')).delegations).toEqual([]);
    expect((await shown(justBefore(grants.first.granted_at))).delegations).toEqual([]);
    expect((await shown(justBefore(grants.second.granted_at))).delegations).toEqual([first]);
    expect((await shown(justBefore(grants.revokedAt))).delegations).toEqual([second, third]);
    expect((await shown(grants.second.granted_at)).delegations).toEqual([second]);
    expect((await shown(grants.third.granted_at)).delegations).toEqual([second, third]);
    expect((await shown(grants.revokedAt)).delegations).toEqual([second]);
    const now = await get(`/v1/delegation/snapshot?ledger_id=${order.ledgerId}`);
    expect(now.body).toMatchObject({ snapshot_at: shape.time, delegations: [second] });
  });

  test('leave out a grant from its end on', async () => {
    const master = await newMaster(order);
    const expires_at = new Date(Date.now() + 150).toISOString();
    const made = await post(`/v1/traceledger/master/${master.uuid}/access`, {
      actor_id: friend.actorId,
      access: 'read',
      expires_at,
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    const read = async (time: unknown) =>
      (await get(`/v1/delegation/snapshot?master_id=${master.uuid}&at=${time}`)).rows('delegations');
    expect(await read(made.granted_at)).toMatchObject([{ link_id: made.link_id, is_active: true, expires_at }]);
    expect(await read(expires_at)).toEqual([]);
    expect((await get(`/v1/traceledger/master/${master.uuid}/access`)).body).toEqual({ count: 0, access: [] });
    expect((await get(`/v1/delegation/master?master_id=${master.uuid}`)).rows('members')).toEqual([]);
    // One that has run out is replaced by the next.
    const next = await post('/v1/delegation/master', {
      master_id: master.uuid,
      delegate_actor_id: friend.actorId,
      role: 'AUDITOR',
      permissions: {},
    });
    const events = (await get(`/v1/traceledger/master/${master.uuid}/events?order=desc&limit=1`)).rows('events');
    expect(events[0]?.payload).toMatchObject({ link_id: next.link_id, replaces_link_id: made.link_id });
  });
});

describe('proofs', () => {
  test('contain every grant and revocation of the scope, in order and in pages', async () => {
    const path = `/v1/delegation/proof?ledger_id=${order.ledgerId}`;
    const proof = await get(path);
    expect(proof.body).toMatchObject({
      scope: 'ledger_id',
      scope_id: order.ledgerId,
      integrity: { verified: true, issues: [] },
    });
    const events = proof.rows('events');
    expect(events.map(({ event_type, payload }) => [event_type, (payload as Fields).link_id])).toEqual([
      ['LEDGER_DELEGATION_GRANTED', grants.first.link_id],
      ['LEDGER_DELEGATION_GRANTED', grants.second.link_id],
      ['LEDGER_DELEGATION_GRANTED', grants.third.link_id],
      ['LEDGER_DELEGATION_REVOKED', grants.third.link_id],
    ]);
    const all = (await get(`/v1/ledgers/${order.ledgerId}/events`)).rows('events');
    for (const event of events) expect(all).toContainEqual(event);
    const page = await get(`${path}&limit=3`);
    expect(page.rows('events')).toEqual(events.slice(0, 3));
    expect((await get(`${path}&limit=3&cursor=${page.text('next_cursor')}`)).rows('events')).toEqual(events.slice(3));
    expect((await get(`${path}&order=desc&limit=1`)).rows('events')).toEqual(events.slice(3));
    expect((await get(`${path}&verify=signatures`)).body.integrity).toEqual({ verified: true, issues: [] });
  });
});
