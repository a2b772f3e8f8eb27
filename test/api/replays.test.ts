import { expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import {
  append,
  closeOf,
  newMaster,
  newOrder,
  newParty,
  otherOrder,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { untilKnownElsewhere } from '../support/several-nodes.ts';

const { base, order, master } = await nodeWithMaster();

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

async function count(ledgerId = order.ledgerId): Promise<number> {
  const page = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events`, order.supplier);
  return page.body.count as number;
}

function expectReplay(answer: RestAnswer | undefined, first: RestAnswer): void {
  expect([answer?.status, answer?.raw, answer?.headers.get('idempotent-replayed')]).toEqual([200, first.raw, 'true']);
  expect(first.headers.get('idempotent-replayed')).toBe(null);
}

test('100 concurrent appends with the same key write one event', async () => {
  const before = await count();
  const many = await Promise.all(
    Array.from({ length: 100 }, () => append(master, order.buyer, 'ONE', { n: 1 }, keyed('hundred'))),
  );
  const good = many.filter(({ status }) => status === 200);
  expect(good.length).toBeGreaterThan(0);
  expect(new Set(good.map(({ raw }) => raw)).size).toBe(1);
  for (const answer of many.filter(({ status }) => status !== 200))
    expectRefused(answer, 409, 'idempotency_in_progress');
  expect(await count()).toBe(before + 1);
  const again = await append(master, order.buyer, 'ONE', { n: 1 }, keyed('hundred'));
  expect([again.status, again.raw]).toEqual([200, good[0]?.raw]);
});

test('a key is refused with another payload, type or master, and free for another actor or ledger', async () => {
  const sibling = await newMaster(order);
  const first = await append(master, order.buyer, 'KEYED', { n: 1 }, keyed('same'));
  const before = await count();
  for (const other of [
    append(master, order.buyer, 'KEYED', { n: 2 }, keyed('same')),
    append(master, order.buyer, 'OTHER', { n: 1 }, keyed('same')),
    append(sibling, order.buyer, 'KEYED', { n: 1 }, keyed('same')),
  ]) {
    expectRefused(await other, 422, 'idempotency_key_reused');
  }
  expect(await count()).toBe(before);
  expectReplay(await append(master, order.buyer, 'KEYED', { n: 1 }, keyed('same')), first);
  const theirs = await append(master, order.supplier, 'KEYED', { n: 1 }, keyed('same'));
  expect([theirs.status, theirs.headers.get('idempotent-replayed')]).toEqual([200, null]);
  expect(theirs.body.event_id).not.toBe(first.body.event_id);
  // On another ledger the same key is another one too.
  const elsewhere = await newMaster(await otherOrder(order));
  const there = await append(elsewhere, order.buyer, 'KEYED', { n: 1 }, keyed('same'));
  expect([there.status, there.headers.get('idempotent-replayed')]).toEqual([200, null]);
});

test('white space and the order of keys do not change a body', async () => {
  const path = `/v1/traceledger/master/${master.uuid}/events`;
  const headers = {
    ...signedBy(order.buyer, 'SPACED', order.ledgerId, { a: 1, b: 2, ...master.injected }),
    'idempotency-key': 'spaced',
  };
  const first = await rest(base, 'POST', path, { headers, body: '{"event_type":"SPACED","payload":{"a":1,"b":2}}' });
  const again = await rest(base, 'POST', path, {
    headers,
    body: '{ "payload": {"b":2.0,\n"a":1}, "event_type": "SPACED" }',
  });
  expectReplay(again, first);
});

test('a replay returns the first answer after the end of the key, the grant, the master and the ledger', async () => {
  const here = await newOrder(base);
  const own = await newMaster(here);
  const delegate = await newParty(base);
  const ids = { ledger_id: here.ledgerId, delegate_actor_id: delegate.actorId };
  const grant = { ...ids, role: 'OPS' };
  await done(base, 'POST', '/v1/delegation/ledger', {
    headers: signedBy(here.buyer, 'LEDGER_DELEGATION_GRANTED', here.ledgerId, grant),
    body: grant,
  });
  const byDelegate = () => append(own, delegate, 'NOTED', { n: 1 }, keyed('delegate'));
  const byBuyer = () => append(own, here.buyer, 'NOTED', { n: 2 }, keyed('buyer'));
  const body = { ledger_id: here.ledgerId, business_ref: 'again', scope: 'ORDER' };
  const create = () =>
    rest(base, 'POST', '/v1/traceledger/master', {
      headers: {
        ...signedBy(here.buyer, 'TRACELEDGER_MASTER_CREATED', here.ledgerId, body),
        'idempotency-key': 'master',
      },
      body,
    });
  const [one, two, made] = [await byDelegate(), await byBuyer(), await create()];
  expect([one.status, two.status, made.status]).toEqual([200, 200, 200]);

  await done(base, 'PATCH', '/v1/delegation/ledger', {
    headers: signedBy(here.buyer, 'LEDGER_DELEGATION_REVOKED', here.ledgerId, ids),
    body: ids,
  });
  expectReplay(await byDelegate(), one);
  expectRefused(await append(own, delegate, 'NOTED', { n: 3 }, keyed('new')), 404, 'not_found');

  const { path, headers } = closeOf(here, here.supplier);
  const close = () => rest(base, 'PATCH', path, { headers: { ...headers, 'idempotency-key': 'close' } });
  const closed = await close();
  expectReplay(await close(), closed);
  for (const party of [here.buyer, here.supplier]) {
    const revoke = { headers: party.bearer, body: { reason: 'over' } };
    await done(base, 'PATCH', `/v1/actors/${party.actorId}/keys/key-1/revoke`, revoke);
  }
  expectReplay(await close(), closed);
  expectReplay(await byBuyer(), two);
  expectReplay(await create(), made);
  expectRefused(await append(own, here.buyer, 'NOTED', { n: 4 }, keyed('newer')), 401, 'signing_key_revoked');

  // But not without a credential that is good.
  const gone = await done(base, 'DELETE', `/v1/developer/keys/${here.buyer.keyId}`, here.buyer);
  expect(gone.status).toBe(204);
  await untilKnownElsewhere('a revoked API key');
  expectRefused(await byBuyer(), 401, 'invalid_api_key');
});

test('a signed closing is replayed after the revocation of its key; another idempotency key is refused', async () => {
  const [primary, counterparty] = [await newParty(base), await newParty(base)];
  const opened = await done(base, 'POST', '/v1/engagements', primary, {
    counterparty_actor_id: counterparty.actorId,
    purpose: 'AUDIT',
  });
  const ledgerId = opened.text('ledger_id');
  const form = {
    ledger_id: ledgerId,
    ledger_type: 'ENGAGEMENT',
    requested_by_actor_id: primary.actorId,
    status: 'CLOSED',
  };
  const close = (key: string) =>
    rest(base, 'PATCH', `/v1/engagements/${ledgerId}/close`, {
      headers: { ...signedBy(primary, 'LEDGER_CLOSED', ledgerId, form), 'idempotency-key': key },
    });
  const closed = await close('first');
  const revoke = { headers: primary.bearer, body: { reason: 'over' } };
  await done(base, 'PATCH', `/v1/actors/${primary.actorId}/keys/key-1/revoke`, revoke);
  expectReplay(await close('first'), closed);
  expectRefused(await close('second'), 401, 'signing_key_revoked');
});

test('other calls are replayed byte for byte, secrets included, to their own caller only', async () => {
  const party: Party = await newParty(base);
  const calls: [string, Fields, Fields][] = [
    ['/v1/developer/keys', { name: 'once' }, { name: 'other' }],
    ['/v1/ledgers', { supplier_svc_id: order.supplier.svcId }, { supplier_actor_id: order.supplier.actorId }],
    ['/v1/engagements', { counterparty_actor_id: order.supplier.actorId, purpose: 'A' }, { purpose: 'B' }],
  ];
  for (const [path, body, other] of calls) {
    const call = (by: Party, sent: Fields) =>
      rest(base, 'POST', path, { headers: { ...by.bearer, 'idempotency-key': `key of ${path}` }, body: sent });
    const first = await call(party, body);
    expect([path, first.status]).toEqual([path, 200]);
    expectReplay(await call(party, body), first);
    expectRefused(await call(party, { ...body, ...other }), 422, 'idempotency_key_reused');
    const theirs = await call(order.buyer, body);
    expect([theirs.status, theirs.raw === first.raw]).toEqual([200, false]);
  }
  // One key names one call, whatever its path.
  const elsewhere = { headers: { ...party.bearer, 'idempotency-key': 'key of /v1/ledgers' }, body: { name: 'once' } };
  expectRefused(await rest(base, 'POST', '/v1/developer/keys', elsewhere), 422, 'idempotency_key_reused');
});

test('a refused call does not use up its key', async () => {
  const late = await newMaster(order);
  const bad = await append(late, order.buyer, '9', {}, keyed('refused'));
  expectRefused(bad, 400, 'invalid_argument');
  const good = await append(late, order.buyer, 'FINE', {}, keyed('refused'));
  expect([good.status, good.headers.get('idempotent-replayed')]).toEqual([200, null]);
});
