import { expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { append, eventsOf, newMaster, newParty } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';

const { base, order, master } = await nodeWithMaster({ keyed: false });

const delegateOf = () => newParty(base, { keyed: false });
const until = (timeMs: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, timeMs - Date.now())));
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const get = (path: string, by = order.buyer) => rest(base, 'GET', path, { headers: by.bearer });
const accessPath = (of = master) => `/v1/traceledger/master/${of.uuid}/access`;
const grant = (actor_id: string, access: string, expires_at?: string, of = master) =>
  done(base, 'POST', accessPath(of), { headers: order.buyer.bearer, body: { actor_id, access, expires_at } });

test('a grant that has run out ends reads and appends alike, and says so; nothing of it stands in the list', async () => {
  const delegate = await delegateOf();
  const expires_at = inMs(1500);
  const made = await grant(delegate.actorId, 'write', expires_at);
  expect(made.body).toEqual({
    link_id: made.text('link_id'),
    master_id: master.uuid,
    delegate_actor_id: delegate.actorId,
    access: 'write',
    is_active: true,
    granted_at: made.text('granted_at'),
    expires_at,
  });
  expect((await append(master, delegate, 'BEFORE', {})).status).toBe(200);
  expect((await get(accessPath(), delegate)).body.count).toBe(1);
  await until(Date.parse(expires_at));
  expectRefused(await append(master, delegate, 'AFTER', {}), 403, 'access_expired');
  for (const path of [
    `/v1/traceledger/master/${master.uuid}`,
    `/v1/traceledger/master/${master.uuid}/events`,
    accessPath(),
    `/v1/ledgers/${order.ledgerId}`,
    `/v1/ledgers/${order.ledgerId}/events`,
    `/v1/traceledger/master?ledger_id=${order.ledgerId}`,
    `/v1/delegation/proof?master_id=${master.uuid}`,
    `/v1/delegation/snapshot?master_id=${master.uuid}`,
  ]) {
    expectRefused(await get(path, delegate), 403, 'access_expired');
  }
  expect((await get('/v1/ledgers', delegate)).body).toMatchObject({ count: 0, ledgers: [] });
  expect((await get(accessPath())).rows('access').map((link) => link.delegate_actor_id)).not.toContain(
    delegate.actorId,
  );
  const types = (await eventsOf(base, order.buyer, order.ledgerId)).map((event) => event.event_type);
  expect(types).toContain('BEFORE');
  expect(types).not.toContain('AFTER');
});

test('a grant to run out in the past is refused, and grants nothing', async () => {
  const delegate = await delegateOf();
  for (const expires_at of [inMs(-1000), '2020-01-01T00:00:00Z']) {
    const body = { actor_id: delegate.actorId, access: 'write', expires_at };
    const answer = await rest(base, 'POST', accessPath(), { headers: order.buyer.bearer, body });
    expectRefused(answer, 400, 'invalid_argument');
  }
  expectRefused(await append(master, delegate, 'NEVER', {}), 404, 'not_found');
});

test('expiry is decided in the order of the ledger: of many appends around it none is dated at or after it', async () => {
  const delegate = await delegateOf();
  const expires_at = inMs(1500);
  await grant(delegate.actorId, 'write', expires_at);
  await until(Date.parse(expires_at) - 500);
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    const ids: string[] = [];
    while (Date.now() < Date.parse(expires_at) + 60) {
      const answer = await append(master, delegate, 'AROUND', { lane });
      if (answer.status === 200) ids.push(answer.text('event_id'));
      else expectRefused(answer, 403, 'access_expired');
    }
    return ids;
  });
  const accepted = (await Promise.all(lanes)).flat();
  const events = (await eventsOf(base, order.buyer, order.ledgerId)).filter(
    ({ event_type }) => event_type === 'AROUND',
  );
  expect(accepted.length).toBeGreaterThan(0);
  expect(events.map(({ id }) => id).toSorted()).toEqual(accepted.toSorted());
  for (const { created_at } of events) expect(String(created_at) < expires_at).toBe(true);
});

test('a new grant ends the old one and names it, whether that has run out or not', async () => {
  const delegate = await delegateOf();
  const of = await newMaster(order);
  const first = await grant(delegate.actorId, 'read', inMs(1500), of);
  expectRefused(await append(of, delegate, 'X', {}), 403, 'permission_denied');
  const granting = (access: string) =>
    done(base, 'POST', '/v1/delegation/master', {
      headers: order.supplier.bearer,
      body: { master_id: of.uuid, delegate_actor_id: delegate.actorId, role: 'OPS', permissions: { access } },
    });
  const second = await granting('write');
  expect((await append(of, delegate, 'X', {})).status).toBe(200);
  // The first one's end is not the second one's.
  await until(Date.parse(first.text('expires_at')) + 20);
  expect((await append(of, delegate, 'X', {})).status).toBe(200);
  const third = await grant(delegate.actorId, 'read', inMs(1500), of);
  expectRefused(await append(of, delegate, 'X', {}), 403, 'permission_denied');
  await until(Date.parse(third.text('expires_at')) + 10);
  expectRefused(await append(of, delegate, 'X', {}), 403, 'access_expired');
  const fourth = await grant(delegate.actorId, 'write', undefined, of);
  expect(fourth.body.expires_at).toBeNull();
  expect((await append(of, delegate, 'X', {})).status).toBe(200);

  const made = [first, second, third, fourth];
  const proof = await get(`/v1/delegation/proof?master_id=${of.uuid}`);
  expect(proof.body.integrity).toEqual({ verified: true, issues: [] });
  const payloads = proof.rows('events').map((event) => event.payload as Fields);
  expect(payloads.map(({ link_id }) => link_id)).toEqual(made.map((answer) => answer.body.link_id));
  expect(payloads.map(({ replaces_link_id }) => replaces_link_id)).toEqual([
    undefined,
    ...made.slice(0, 3).map((answer) => answer.body.link_id),
  ]);
  expect(payloads.map((payload) => 'expires_at' in payload)).toEqual([true, false, true, false]);
  const list = await get(`/v1/delegation/master?master_id=${of.uuid}&include_revoked=true`);
  expect(list.rows('members').map((link) => [link.is_active, link.revoked_at])).toEqual([
    [false, second.body.granted_at],
    [false, third.body.granted_at],
    [false, fourth.body.granted_at],
    [true, null],
  ]);
  const remove = (link: unknown) => rest(base, 'DELETE', `${accessPath(of)}/${link}`, { headers: order.buyer.bearer });
  for (const ended of made.slice(0, 3)) expectRefused(await remove(ended.body.link_id), 404, 'not_found');
  expect((await remove(fourth.body.link_id)).status).toBe(204);
  expectRefused(await remove(fourth.body.link_id), 404, 'not_found');
  expectRefused(await append(of, delegate, 'X', {}), 404, 'not_found');
  expectRefused(await get(`/v1/traceledger/master/${of.uuid}`, delegate), 404, 'not_found');
});

test('a snapshot tells who had access at any time; the proof has every grant and revocation in order', async () => {
  const of = await newMaster(order);
  const [kept, ended, expiring] = [await delegateOf(), await delegateOf(), await delegateOf()];
  const pause = () => until(Date.now() + 15);
  await pause();
  const before = new Date().toISOString();
  await pause();
  const a = await grant(kept.actorId, 'read', undefined, of);
  await pause();
  const b = await grant(ended.actorId, 'write', undefined, of);
  await pause();
  const c = await grant(expiring.actorId, 'write', inMs(60), of);
  await until(Date.parse(c.text('expires_at')) + 15);
  const revoked = await done(base, 'PATCH', '/v1/delegation/master', {
    headers: order.supplier.bearer,
    body: { master_id: of.uuid, delegate_actor_id: ended.actorId },
  });
  const justBefore = (time: string) => new Date(Date.parse(time) - 1).toISOString();
  const [grantedA, grantedB, grantedC] = [a, b, c].map((answer) => answer.text('granted_at')) as [
    string,
    string,
    string,
  ];
  const [expiresAt, revokedAt] = [c.text('expires_at'), revoked.text('revoked_at')];
  const at = async (time: string) => {
    const answer = await done(base, 'GET', `/v1/delegation/snapshot?master_id=${of.uuid}&at=${time}`, {
      headers: order.buyer.bearer,
    });
    expect(answer.body).toMatchObject({ scope: 'master_id', scope_id: of.uuid, snapshot_at: time });
    const links = answer.rows('delegations');
    expect(answer.body.count).toBe(links.length);
    for (const link of links) {
      expect(link).toMatchObject({ is_active: true, revoked_at: null, granted_by_actor_id: order.buyer.actorId });
    }
    return links.map(({ delegate_actor_id }) => delegate_actor_id);
  };
  const [k, e, x] = [kept.actorId, ended.actorId, expiring.actorId];
  expect(await at(before)).toEqual([]);
  expect(await at(justBefore(grantedA))).toEqual([]);
  expect(await at(grantedA)).toEqual([k]);
  expect(await at(justBefore(grantedB))).toEqual([k]);
  expect(await at(grantedB)).toEqual([k, e]);
  expect(await at(grantedC)).toEqual([k, e, x]);
  expect(await at(justBefore(expiresAt))).toEqual([k, e, x]);
  expect(await at(expiresAt)).toEqual([k, e]);
  expect(await at(justBefore(revokedAt))).toEqual([k, e]);
  expect(await at(revokedAt)).toEqual([k]);

  const proved: Fields[] = [];
  for (let cursor = ''; ; ) {
    const page = await get(`/v1/delegation/proof?master_id=${of.uuid}&limit=1${cursor}`);
    expect(page.body.integrity).toEqual({ verified: true, issues: [] });
    proved.push(...page.rows('events'));
    if (page.body.next_cursor === undefined) break;
    cursor = `&cursor=${encodeURIComponent(page.text('next_cursor'))}`;
  }
  expect(proved.map(({ event_type, payload }) => [event_type, (payload as Fields).delegate_actor_id])).toEqual([
    ['MASTER_DELEGATION_GRANTED', k],
    ['MASTER_DELEGATION_GRANTED', e],
    ['MASTER_DELEGATION_GRANTED', x],
    ['MASTER_DELEGATION_REVOKED', e],
  ]);
  const seqs = proved.map(({ seq }) => Number(seq));
  expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
});
