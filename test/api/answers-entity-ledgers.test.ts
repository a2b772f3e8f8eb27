import { describe, expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newDevice, newParty, signedBy } from '../support/parties.ts';
import { done, expectRefused, rest, shape } from '../support/parties-rest.ts';

const { base } = await nodeForTests();
const party = await newParty(base);
const device = await newDevice(base, { owner: party });

const asDevice = (method: string, path: string, body?: unknown) =>
  rest(base, method, path, { headers: device.headers, body });

describe('root ledgers', () => {
  test('an entity gets one root, however many calls ask for it at once', async () => {
    const many = await Promise.all(Array.from({ length: 12 }, () => asDevice('POST', '/v1/entities/root-ledger')));
    const [first] = many;
    expect(first?.body).toEqual({
      ledger_id: shape.uuid,
      entity_actor_id: device.actorId,
      ledger_type: 'ENTITY_ROOT',
      status: 'OPEN',
      genesis_hash: shape.hash,
    });
    for (const answer of many) expect([answer.status, answer.body]).toEqual([200, first?.body]);
    const ledgerId = first?.text('ledger_id') ?? '';

    const read = await asDevice('GET', `/v1/entities/root-ledger/${device.actorId}`);
    expect(read.body).toEqual({
      ledger_id: ledgerId,
      primary_actor_id: device.actorId,
      ledger_type: 'ENTITY_ROOT',
      status: 'OPEN',
    });
    const events = await asDevice('GET', `/v1/ledgers/${ledgerId}/events`);
    expect(events.rows('events')).toMatchObject([
      {
        seq: 0,
        event_type: 'GENESIS',
        actor_id: null,
        actor_type: 'service',
        hash: first?.text('genesis_hash'),
        payload: {
          ledger_type: 'ENTITY_ROOT',
          primary_actor_id: device.actorId,
          counterparty_actor_id: device.actorId,
          entity_id: device.entityId,
        },
      },
    ]);
    expect(Object.keys((events.rows('events')[0]?.payload ?? {}) as object)).toHaveLength(4);
  });

  test('a root is closed once and stays the only root of its entity', async () => {
    const other = await newDevice(base);
    const as = (method: string, path: string) => rest(base, method, path, { headers: other.headers });
    const { ledger_id } = (await as('POST', '/v1/entities/root-ledger')).body;
    const close = () => as('PATCH', `/v1/entities/root-ledger/${other.actorId}/close`);
    expect((await close()).body).toEqual({ ledger_id, status: 'CLOSED' });
    expectRefused(await close(), 409, 'ledger_closed');
    expect((await as('POST', '/v1/entities/root-ledger')).body).toMatchObject({ ledger_id, status: 'CLOSED' });
    const events = await as('GET', `/v1/ledgers/${ledger_id}/events`);
    const closing = events.rows('events')[1];
    expect(closing).toMatchObject({ event_type: 'LEDGER_CLOSED', actor_id: other.actorId, actor_sig: null });
    expect(closing?.payload).toEqual({
      ledger_id,
      ledger_type: 'ENTITY_ROOT',
      requested_by_actor_id: other.actorId,
      status: 'CLOSED',
    });
  });
});

describe('the ARL gate', () => {
  test('refuses an engagement without a root while it is set', async () => {
    const gated = await newDevice(base);
    const as = (method: string, path: string, body?: unknown) =>
      rest(base, method, path, { headers: gated.headers, body });
    const engage = () => as('POST', '/v1/engagements', { counterparty_actor_id: party.actorId, purpose: 'SERVICE' });
    expect((await engage()).status).toBe(200);
    const set = await as('PATCH', '/v1/entities/arl-gate', { require_arl: true });
    expect(set.body).toEqual({ require_arl: true, updated_at: shape.time });
    expectRefused(await engage(), 409, 'arl_required');
    await as('POST', '/v1/entities/root-ledger');
    expect((await engage()).status).toBe(200);
    expect((await as('PATCH', '/v1/entities/arl-gate', { require_arl: false })).body).toMatchObject({
      require_arl: false,
    });
  });
});

describe('engagements', () => {
  test('are opened, read and closed, and GENESIS names both sides', async () => {
    const made = await asDevice('POST', '/v1/engagements', {
      counterparty_actor_id: party.actorId,
      purpose: 'SERVICE',
    });
    const ledgerId = made.text('ledger_id');
    const engagement = {
      ledger_id: ledgerId,
      primary_actor_id: device.actorId,
      counterparty_actor_id: party.actorId,
      ledger_type: 'ENGAGEMENT',
      purpose: 'SERVICE',
      status: 'OPEN',
    };
    expect(made.body).toEqual(engagement);
    expect((await done(base, 'GET', `/v1/engagements/${ledgerId}`, party)).body).toEqual(engagement);
    const events = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events`, party);
    expect(events.rows('events')[0]?.payload).toEqual({
      ledger_type: 'ENGAGEMENT',
      primary_actor_id: device.actorId,
      counterparty_actor_id: party.actorId,
      purpose: 'SERVICE',
      entity_id: device.entityId,
    });
    const closed = await done(base, 'PATCH', `/v1/engagements/${ledgerId}/close`, party);
    expect(closed.body).toEqual({ ledger_id: ledgerId, status: 'CLOSED' });
    expectRefused(await rest(base, 'PATCH', `/v1/engagements/${ledgerId}/close`, party), 409, 'ledger_closed');
    expect((await done(base, 'GET', `/v1/engagements/${ledgerId}`, party)).body).toEqual({
      ...engagement,
      status: 'CLOSED',
    });
  });

  test('accept an unsigned closing, and check and keep a signature that is sent', async () => {
    const made = await done(base, 'POST', '/v1/engagements', party, {
      counterparty_actor_id: device.actorId,
      purpose: 'LEASE',
    });
    const ledgerId = made.text('ledger_id');
    const form = {
      ledger_id: ledgerId,
      ledger_type: 'ENGAGEMENT',
      requested_by_actor_id: party.actorId,
      status: 'CLOSED',
    };
    const path = `/v1/engagements/${ledgerId}/close`;
    const wrong = signedBy(party, 'LEDGER_CLOSED', ledgerId, { ...form, buyer_actor_id: null });
    expectRefused(await rest(base, 'PATCH', path, { headers: wrong }), 401, 'invalid_signature');
    const headers = signedBy(party, 'LEDGER_CLOSED', ledgerId, form);
    await done(base, 'PATCH', path, { headers });
    const events = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events`, party);
    expect(events.rows('events')[0]?.payload).not.toHaveProperty('entity_id');
    expect(events.rows('events')[1]).toMatchObject({
      event_type: 'LEDGER_CLOSED',
      actor_sig: null,
      payload: { ...form, requestor_sig: headers['x-actor-sig'], requestor_signing_key_id: party.kid },
      actor_sig_payload: form,
    });
  });
});
