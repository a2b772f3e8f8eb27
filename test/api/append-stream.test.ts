import { connect } from 'node:http2';
import { create, type Message, toBinary } from '@bufbuild/protobuf';
import { afterAll, expect, test } from 'vitest';
import { AppendEventsRequestSchema } from '../../src/gen/svc/v1/masters_pb.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { eventsOf, type Master, newMaster, newOrder, otherOrder, type Party, signatureOf } from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';
import {
  appended,
  openStream,
  outcomeOf,
  type StreamedEvent,
  type StreamOutcome,
  sendAll,
  streamed,
} from '../support/parties-stream.ts';

const { base, grpcAddress } = await nodeForTests();
const client = grpcClient(grpcAddress);
afterAll(() => client.close());

const send = (by: Pick<Party, 'bearer'>, events: readonly StreamedEvent[]) => sendAll(client, by, events);

test('outcomes and log have the order of the stream within each ledger', async () => {
  const first = await newOrder(base);
  const orders = [first, await otherOrder(first)];
  const masters = await Promise.all(orders.flatMap((order) => [newMaster(order), newMaster(order)]));
  const events = Array.from({ length: 300 }, (_, n) => streamed(masters[(n * 7) % 4] as Master, first.buyer, n, { n }));
  const outcomes = await send(first.buyer, events);
  expect(outcomes.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual(events.map((_, n) => n));
  for (const order of orders) {
    const own = outcomes.filter((outcome) => appended(outcome).event?.ledgerId === order.ledgerId);
    expect(own.map(({ index }) => index)).toEqual(own.map(({ index }) => index).toSorted((a, b) => a - b));
    const log = (await eventsOf(base, order.supplier, order.ledgerId, '&verify=signatures')).filter(
      (one) => one.event_type === 'NOTED',
    );
    expect(log.map((one) => (one.payload as Fields).n)).toEqual(own.map(({ index }) => index));
    expect(log.map((one) => one.hash)).toEqual(own.map((outcome) => appended(outcome).event?.hash));
  }
});

test('a refused event has its own code and does not end the stream', async () => {
  const order = await newOrder(base);
  const [master, sibling] = [await newMaster(order), await newMaster(order)];
  const good = (index: number) => streamed(master, order.buyer, index, { index });
  const stranger = await newOrder(base);
  const foreign = await newMaster(stranger);
  const outcomes = await send(order.buyer, [
    good(0),
    { ...good(1), payload: '{"a":1,"a":2}' },
    { ...good(2), payload: '[1]' },
    { ...good(3), payload: '{"n":9007199254740993}' },
    { ...good(4), payload: '{"n":' },
    { ...good(5), eventType: 'GENESIS' },
    { ...good(6), eventType: '9' },
    { ...good(7), uuid: sibling.uuid },
    { ...good(8), actorSig: 'AAAA' },
    { ...good(9), signingKeyId: `${order.buyer.svcId}#key-9` },
    { ...good(10), uuid: foreign.uuid },
    { ...good(11), uuid: 'x' },
    { ...good(12), payload: JSON.stringify({ text: 'x'.repeat(262_200) }) },
    { ...good(13), deliveryChain: '{}' },
    { ...good(14), payload: '{"delivery_chain":[]}' },
    { ...good(15), payload: '{"scope":"other"}' },
    { ...good(16), idempotencyKey: '' },
    { ...good(17), idempotencyKey: 'ü' },
    { clientIndex: 18n, uuid: master.uuid, eventType: 'NOTED', payload: '{}' },
    good(19),
  ]);
  const codes = outcomes.toSorted((a, b) => a.index - b.index).map(({ index, code }) => `${index} ${code ?? 'ok'}`);
  expect(codes).toEqual([
    '0 ok',
    '1 duplicate_key',
    '2 invalid_argument',
    '3 unsafe_number',
    '4 invalid_json',
    '5 reserved_event_type',
    '6 invalid_argument',
    '7 invalid_signature',
    '8 invalid_signature',
    '9 unknown_signing_key',
    '10 not_found',
    '11 invalid_argument',
    '12 payload_too_large',
    '13 invalid_argument',
    '14 reserved_field',
    '15 reserved_field',
    '16 invalid_argument',
    '17 invalid_argument',
    '18 signature_required',
    '19 ok',
  ]);
  const wrong = outcomes.find(({ index }) => index === 7)?.answer.outcome;
  const details = wrong?.case === 'error' ? (JSON.parse(wrong.value.details) as Fields) : {};
  expect(details).toMatchObject({
    event_type: 'NOTED',
    ledger_id: order.ledgerId,
    expected_canonical_json: expect.stringContaining(sibling.uuid),
  });
  expect(wrong?.case === 'error' ? wrong.value.resumeFrom : 0n).toBeUndefined();
});

test('an idempotency key returns its first outcome on the same stream, on the next one and over REST', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  const keyed = (index: number, payload: Fields) =>
    streamed(master, order.buyer, index, payload, { idempotencyKey: 'the-one' });
  const [one] = await send(order.buyer, [keyed(0, { n: 1 })]);
  const [two] = await send(order.buyer, [keyed(7, { n: 1 })]);
  const [three, other] = await send(order.buyer, [keyed(0, { n: 1 }), keyed(1, { n: 2 })]);
  const all = [one, two, three].map((outcome) => appended(outcome as StreamOutcome));
  expect(all.map(({ replayed }) => replayed)).toEqual([false, true, true]);
  expect(new Set(all.map((outcome) => outcome.event?.eventId)).size).toBe(1);
  expect(other?.code).toBe('idempotency_key_reused');
  const answer = await rest(base, 'POST', `/v1/traceledger/master/${master.uuid}/events`, {
    headers: {
      ...order.buyer.bearer,
      'x-signing-key-id': String(order.buyer.kid),
      'x-actor-sig': signatureOf(order.buyer.key.privateKey, 'NOTED', order.ledgerId, { n: 1, ...master.injected }),
      'idempotency-key': 'the-one',
    },
    body: { event_type: 'NOTED', payload: { n: 1 } },
  });
  expect([answer.status, answer.headers.get('idempotent-replayed'), answer.body.event_id]).toEqual([
    200,
    'true',
    all[0]?.event?.eventId,
  ]);
});

test('a doubled key on a stream writes its first event once and loses none of the events behind it', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  const events = [0, 1, 2, 3, 4, 5].map((n) =>
    streamed(master, order.buyer, n, { n: n === 3 ? 2 : n }, { idempotencyKey: n === 3 ? 'key-2' : `key-${n}` }),
  );
  const outcomes = await send(order.buyer, events);
  expect(outcomes.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(outcomes.slice(0, 3).map(({ code }) => code)).toEqual([null, null, null]);
  const repeated = outcomes[3] as StreamOutcome;
  if (repeated.code !== null) {
    // The first event with the key was still being written: the stream is resumed from the second.
    expect(outcomes.slice(3).map(({ code }) => code)).toEqual([
      'idempotency_in_progress',
      'unavailable',
      'unavailable',
    ]);
    for (const { resumeFrom } of outcomes.slice(3)) expect(resumeFrom).toBe(3);
    const resumed = await send(order.buyer, events.slice(3));
    expect(resumed.map((outcome) => appended(outcome).replayed)).toEqual([true, false, false]);
  }
  const log = (await eventsOf(base, order.buyer, order.ledgerId)).filter((one) => one.event_type === 'NOTED');
  expect(log.map((one) => (one.payload as Fields).n)).toEqual([0, 1, 2, 4, 5]);
});

test('a client that does not read its outcomes is slowed down and delays nobody else', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  // grpc-js reads ahead whatever its caller does, so this one speaks HTTP/2 itself and never reads.
  const session = connect(`http://${grpcAddress}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/svc.v1.MasterService/AppendEvents',
    'content-type': 'application/grpc+proto',
    te: 'trailers',
    ...order.buyer.bearer,
  });
  stream.on('error', () => {}).pause();
  let sent = 0;
  for (; sent < 10_000; sent += 1) {
    const bytes = toBinary(
      AppendEventsRequestSchema,
      create(AppendEventsRequestSchema, streamed(master, order.buyer, sent, { sent })),
    );
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(bytes.length, 1);
    if (stream.write(Buffer.concat([frame, bytes]))) continue;
    const drained = new Promise((resolve) => stream.once('drain', () => resolve(true)));
    const waited = new Promise((resolve) => setTimeout(() => resolve(false), 2_000));
    if ((await Promise.race([drained, waited])) === false) break;
  }
  expect(sent).toBeLessThan(5_000);
  expect((await rest(base, 'GET', '/health')).status).toBe(200);
  const [outcome] = await send(order.supplier, [streamed(master, order.supplier, 0, { other: true })]);
  expect(outcome?.code).toBe(null);
  session.destroy();
});

test('a revoked credential ends its stream within two seconds', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  const extra = await done(base, 'POST', '/v1/developer/keys', order.buyer, { name: 'stream' });
  const streaming = { ...order.buyer, bearer: { authorization: `Bearer ${extra.text('api_key')}` } };
  const stream = openStream(client, streaming);
  const outcomes: StreamOutcome[] = [];
  stream.on('data', (message: Message) => outcomes.push(outcomeOf(message)));
  const failed = new Promise<{ code?: number }>((resolve) => stream.once('error', resolve));
  stream.write(streamed(master, streaming, 0, { n: 0 }));
  await expect.poll(() => outcomes.length).toBe(1);
  await done(base, 'DELETE', `/v1/developer/keys/${extra.text('key_id')}`, order.buyer);
  const begun = performance.now();
  const error = await failed;
  expect(performance.now() - begun).toBeLessThan(2_500);
  expect(error.code).toBe(16);
  expect(outcomes.map(({ code }) => code)).toEqual([null]);
});

test('a cancelled stream leaves whole events only, and a retry writes each event once', async () => {
  const order = await newOrder(base);
  const master = await newMaster(order);
  for (let round = 0; round < 5; round += 1) {
    const stream = openStream(client, order.buyer);
    stream.on('error', () => {});
    stream.on('data', () => {});
    for (let n = 0; n < 100; n += 1)
      stream.write(streamed(master, order.buyer, n, { round, n }, { idempotencyKey: `${round}-${n}` }));
    await new Promise((resolve) => setTimeout(resolve, round * 8));
    stream.cancel();
  }
  // The same again, to the end: each event is there once.
  for (let round = 0; round < 5; round += 1) {
    const events = Array.from({ length: 100 }, (_, n) =>
      streamed(master, order.buyer, n, { round, n }, { idempotencyKey: `${round}-${n}` }),
    );
    // What was torn off may still be running for a moment.
    await expect.poll(async () => (await send(order.buyer, events)).filter(({ code }) => code !== null)).toEqual([]);
  }
  const log = await eventsOf(base, order.supplier, order.ledgerId);
  expect(log.filter((one) => one.event_type === 'NOTED')).toHaveLength(500);
});
