import type { Client } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { signerFromPrivateKey } from '../../src/client/signing/signing.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { isNightly } from '../support/nightly.ts';
import { onboarding } from '../support/organizations.ts';
import { append, eventsOf, type Master, newMaster, newOrder, type Order, otherOrder } from '../support/parties.ts';
import { type Fields, rest } from '../support/parties-rest.ts';
import { type StreamedEvent, sendAll, streamed } from '../support/parties-stream.ts';
import { type FaultyNode, runFaultyNode } from '../support/running-node-faulty.ts';
import type { StoreFault } from '../support/store-faults.ts';

let node: FaultyNode;
let client: Client;
let order: Order;
let master: Master;

beforeAll(async () => {
  node = await runFaultyNode();
  client = grpcClient(node.grpcAddress);
});
beforeEach(async () => {
  node.heal();
  order = await newOrder(node.base);
  master = await newMaster(order);
});
afterAll(async () => {
  client.close();
  await node[Symbol.asyncDispose]();
});

const numbers = async () =>
  (await eventsOf(node.base, order.buyer, order.ledgerId, '&verify=signatures'))
    .filter((event) => event.event_type === 'NOTED')
    .map((event) => (event.payload as Fields).n);

test('no event behind a failed write is taken, and every outcome names the event to resume from', async () => {
  const events: StreamedEvent[] = Array.from({ length: 200 }, (_, n) =>
    streamed(master, order.buyer, n, { n }, { idempotencyKey: `n-${n}` }),
  );
  node.fail('append', 'unavailable');
  const outcomes = await sendAll(client, order.buyer, events);
  expect(outcomes.map(({ index }) => index)).toEqual(events.map((_, n) => n));
  const first = outcomes.findIndex(({ code }) => code !== null);
  expect(first).toBeGreaterThanOrEqual(0);
  for (const outcome of outcomes.slice(first)) {
    expect([outcome.code, outcome.resumeFrom]).toEqual(['unavailable', first]);
  }
  expect(await numbers()).toEqual(events.slice(0, first).map((_, n) => n));
  const resumed = await sendAll(client, order.buyer, events.slice(first));
  expect(resumed.filter(({ code }) => code !== null)).toEqual([]);
  expect(await numbers()).toEqual(events.map((_, n) => n));
});

test('a failed write of one ledger does not stop another ledger on the same stream', async () => {
  const elsewhere = await newMaster(await otherOrder(order));
  node.fail('append', 'unavailable');
  const outcomes = await sendAll(client, order.buyer, [
    streamed(master, order.buyer, 0, { n: 0 }),
    ...Array.from({ length: 20 }, (_, n) => streamed(elsewhere, order.buyer, n + 1, { n })),
    streamed(master, order.buyer, 21, { n: 1 }),
  ]);
  const failed = outcomes.filter(({ code }) => code !== null);
  // Whichever ledger's write came first is the one that failed; the other one is whole.
  expect(new Set(failed.map(({ index }) => index === 0 || index === 21)).size).toBe(1);
  expect(failed.length).toBeGreaterThan(0);
});

test.each<{ faults: StoreFault[] }>([
  { faults: ['lost'] },
  { faults: ['applied'] },
  { faults: ['late'] },
  { faults: ['late-before-claim'] },
  { faults: ['lost', 'applied'] },
  { faults: ['unavailable', 'applied', 'late', 'lost'] },
])('the stream of the client writes every event once and in order through $faults', async ({ faults }) => {
  await using typed = createClient({
    baseUrl: node.base,
    grpcUrl: `http://${node.grpcAddress}`,
    apiKey: order.buyer.apiKey,
    signer: signerFromPrivateKey(order.buyer.key.privateKey, order.buyer.kid ?? ''),
  });
  await using stream = typed.appendStream();
  const pending: Promise<unknown>[] = [];
  for (let n = 0; n < 120; n += 1) {
    if (n % 30 === 10) node.fail('append', ...faults);
    await stream.ready();
    pending.push(stream.append({ uuid: master.uuid, eventType: 'NOTED', payload: { n } }));
    if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
  }
  const outcomes = (await Promise.all(pending)) as { eventId: string }[];
  expect(await numbers()).toEqual(pending.map((_, n) => n));
  expect(new Set(outcomes.map(({ eventId }) => eventId)).size).toBe(120);
});

test.each(['lost', 'applied', 'late', 'late-before-claim'] as const)(
  'an append with a %s write has its true answer, and its retry returns the same event',
  async (fault) => {
    for (let n = 0; n < 5; n += 1) {
      node.fail('append', fault);
      const headers = { 'idempotency-key': `n-${n}` };
      const answer = await append(master, order.buyer, 'NOTED', { n }, { headers });
      expect([answer.status, answer.code]).toEqual([200, null]);
      const again = await append(master, order.buyer, 'NOTED', { n }, { headers });
      expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([answer.body, 'true']);
    }
    expect(await numbers()).toEqual([0, 1, 2, 3, 4]);
  },
);

test('a failing store is answered as unavailable, and a retry succeeds or conflicts', async () => {
  const calls: [string, string, Fields?][] = [
    ['POST', '/v1/onboarding/organization', onboarding],
    ['POST', '/v1/ledgers', { supplier_svc_id: order.supplier.svcId }],
    ['POST', '/v1/developer/keys', { name: 'x' }],
    ['GET', `/v1/ledgers/${order.ledgerId}/events`],
    ['GET', '/v1/developer/me'],
    ['GET', '/v1/ledgers'],
  ];
  const wrong: unknown[] = [];
  for (const [method, path, sent] of calls) {
    for (const operation of ['record-read', 'record-write', 'read', 'claim', 'append'] as const) {
      for (let at = 0; at < (isNightly ? 3 : 1); at += 1) {
        node.fail(operation, 'unavailable');
        const key = `${method} ${path} ${operation} ${at}`;
        const headers = { ...order.buyer.bearer, ...(method === 'GET' ? {} : { 'idempotency-key': key }) };
        const answer = await rest(node.base, method, path, { headers, body: sent });
        if (![200, 503, 504].includes(answer.status)) wrong.push([key, answer.status, answer.raw]);
        const again = await rest(node.base, method, path, { headers, body: sent });
        if (![200, 409, 503].includes(again.status)) wrong.push([key, 'again', again.status, again.raw]);
      }
    }
  }
  expect(wrong).toEqual([]);
});
