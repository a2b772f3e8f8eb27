import { expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { append, newMaster, newOrder, type Party, signedBy } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';

const { base, order, master } = await nodeWithMaster();
const sibling = await newMaster(order);

/** Sends exactly these headers and this payload. */
const send = (headers: Record<string, string>, payload: unknown, eventType = 'NOTED', to = master) =>
  rest(base, 'POST', `/v1/traceledger/master/${to.uuid}/events`, { headers, body: { event_type: eventType, payload } });

const signed = (form: unknown, by: Party = order.buyer, eventType = 'NOTED', ledgerId = order.ledgerId) =>
  signedBy(by, eventType, ledgerId, form);

async function count(): Promise<number> {
  const page = await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/events`, order.buyer);
  return page.body.count as number;
}

async function read(id: string): Promise<Fields> {
  const page = await done(
    base,
    'GET',
    `/v1/ledgers/${order.ledgerId}/events?event_id=${id}&verify=signatures`,
    order.supplier,
  );
  expect(page.body.integrity).toEqual({ verified: true, issues: [] });
  return page.rows('events')[0] ?? {};
}

test('the signature covers the payload after injection, which is stored as it is', async () => {
  const payload = { n: 1, text: 'é\u2028😀', nested: { __proto__x: 1, constructor: {} }, number: 1.1e21 };
  const made = await append(master, order.buyer, 'NOTED', payload);
  expect(made.body).toMatchObject({ status: 'recorded', event_type: 'NOTED', ledger_id: order.ledgerId });
  const event = await read(made.text('event_id'));
  expect(event).toMatchObject({ actor_id: order.buyer.actorId, actor_type: 'service', actor_sig_payload: null });
  expect(event.payload).toEqual({ ...payload, ...master.injected });
  expect(event.hash).toBe(made.text('hash'));
});

test('the submitted payload may be signed if it names its master, and is stored as the signed form', async () => {
  const named = { n: 2, traceledger_master_uuid: master.uuid };
  const made = await send(signed(named), named);
  expect(made.status).toBe(200);
  const event = await read(made.text('event_id'));
  expect(event.actor_sig_payload).toEqual(named);
  expect(event.payload).toEqual({ ...named, ...master.injected });

  const unnamed = { n: 3 };
  const answer = await send(signed(unnamed), unnamed);
  expectRefused(answer, 401, 'invalid_signature');
  const { details } = answer.body.error as { details: Fields };
  expect(details).toMatchObject({ event_type: 'NOTED', ledger_id: order.ledgerId });
  expect(JSON.parse(String(details.expected_canonical_json))).toEqual({ ...unnamed, ...master.injected });
});

test('a field of the service is accepted only with the value of the service', async () => {
  const same = { ...master.injected, n: 4 };
  expect((await send(signed(same), same)).status).toBe(200);
  for (const [field, value] of Object.entries({ ...master.injected, traceledger_master_uuid: sibling.uuid })) {
    for (const wrong of [`${String(value)}x`, null, 1, field === 'traceledger_master_uuid' ? sibling.uuid : '']) {
      const payload = { [field]: wrong };
      const answer = await send(signed({ ...master.injected, ...payload }), payload);
      expectRefused(answer, 400, 'reserved_field');
      expect(answer.body.error).toMatchObject({ details: { field: `payload.${field}` } });
    }
  }
  expectRefused(await send(signed({}), { delivery_chain: [] }), 400, 'reserved_field');
});

test('a signature verifies for its own master, ledger, event type, actor and payload only', async () => {
  const before = await count();
  const payload = { n: 5 };
  const full = { ...payload, ...master.injected };
  const otherLedger = await newOrder(base);
  expectRefused(await send(signed(full), payload, 'NOTED', sibling), 401, 'invalid_signature');
  expectRefused(await send(signed(full), payload, 'NOTED_TOO'), 401, 'invalid_signature');
  expectRefused(
    await send(signed(full, order.buyer, 'NOTED', otherLedger.ledgerId), payload),
    401,
    'invalid_signature',
  );
  expectRefused(await send(signed(full), { n: 6 }), 401, 'invalid_signature');
  const bySupplier = { ...signed(full, order.supplier), ...order.buyer.bearer };
  expectRefused(await send(bySupplier, payload), 401, 'unknown_signing_key');
  const borrowedKid = { ...signed(full), 'x-signing-key-id': String(order.supplier.kid), ...order.supplier.bearer };
  expectRefused(await send(borrowedKid, payload), 401, 'invalid_signature');
  const named = { n: 7, traceledger_master_uuid: master.uuid };
  expectRefused(await send(signed(named), named, 'NOTED', sibling), 400, 'reserved_field');
  expect(await count()).toBe(before);
});

test('the preferred key verifies an append that names no key', async () => {
  const { 'x-signing-key-id': kid, ...unnamed } = signed({ n: 8, ...master.injected });
  expectRefused(await send({ ...unnamed, 'x-signing-key-id': `${kid},${kid}` }, { n: 8 }), 401, 'invalid_signature');
  expect((await send(unnamed, { n: 8 })).status).toBe(200);
});

test('a delivery chain is stored outside of the signed form', async () => {
  const item = { actor_id: order.supplier.actorId, actor_type: 'external', role: 'CARRIER' };
  const payload = { n: 10 };
  const made = await append(master, order.buyer, 'NOTED', payload, {
    headers: { 'x-delivery-chain': JSON.stringify([item]) },
  });
  const event = await read(made.text('event_id'));
  expect(event.payload).toEqual({ ...payload, ...master.injected, delivery_chain: [item] });
  expect(event.actor_sig_payload).toEqual({ ...payload, ...master.injected });
});

test('caused_by_hash is recorded as it was sent', async () => {
  const hash = 'ab'.repeat(32);
  const made = await append(master, order.buyer, 'CORRECTION_NOTE', { caused_by_hash: hash });
  expect(await read(made.text('event_id'))).toMatchObject({ caused_by_hash: hash, payload: { caused_by_hash: hash } });
  const none = await append(master, order.buyer, 'CORRECTION_NOTE', { caused_by_hash: null });
  expect(await read(none.text('event_id'))).toMatchObject({ caused_by_hash: null, payload: { caused_by_hash: null } });
});

test('a valid X-ACTOR-TYPE beside a Bearer key is the actor type of the event', async () => {
  for (const type of ['human', 'service', 'external', 'device']) {
    const made = await append(master, order.buyer, 'NOTED', { type }, { headers: { 'x-actor-type': type } });
    expect((await read(made.text('event_id'))).actor_type).toBe(type);
  }
  const odd = await append(master, order.buyer, 'NOTED', {}, { headers: { 'x-actor-type': 'robot' } });
  expect([odd.status, odd.code]).toEqual([401, 'invalid_actor_identity']);
});
