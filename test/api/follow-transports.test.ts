import { create, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import type { ServiceError } from '@grpc/grpc-js';
import { afterAll, describe, expect, test } from 'vitest';
import {
  type FollowLedgerEventsResponse,
  FollowLedgerEventsResponseSchema,
  LedgerService,
} from '../../src/gen/svc/v1/ledgers_pb.ts';
import { type FollowMasterEventsResponse, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import { grpcClient, infoOf, metadataOf } from '../support/grpc-client.ts';
import { liveEvents } from '../support/live-events.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, closeOf, eventsOf, newMaster, newOrder, otherOrder, type Party } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode } from '../support/running-node.ts';

const { node, base, order } = await nodeWithOrder();
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());

const valueAt = (value: unknown, ...path: string[]): unknown =>
  path.reduce((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value);

type Answer = FollowLedgerEventsResponse | FollowMasterEventsResponse;

/** The seqs of a stream's events, and the names of its other messages. */
const shown = ({ message }: Answer) =>
  message.case === 'event' ? Number(message.value.event?.seq) : (message.case ?? '');

/** Follows a ledger over gRPC; resolves with the next messages on demand. */
function followGrpc(request: object, by: Party) {
  const method = LedgerService.method.followLedgerEvents;
  const call = grpc.makeServerStreamRequest(
    rpcPathOf(method),
    (message: object) => Buffer.from(toBinary(method.input, create(method.input, message as Record<string, unknown>))),
    (bytes: Buffer) => fromBinary(FollowLedgerEventsResponseSchema, bytes),
    request,
    metadataOf(by.bearer),
  );
  const all: FollowLedgerEventsResponse[] = [];
  call.on('data', (message: Message) => void all.push(message as FollowLedgerEventsResponse));
  const ended = new Promise<ServiceError | null>((resolve) => {
    call.on('error', resolve);
    call.on('end', () => resolve(null));
  });
  return { call, all, ended, shown: () => all.map(shown) };
}

describe('every protocol follows the same ledger', () => {
  const webs = [
    ['Connect, JSON', createConnectTransport({ baseUrl: base, httpVersion: '1.1', useBinaryFormat: false })],
    ['Connect, binary', createConnectTransport({ baseUrl: base, httpVersion: '1.1', useBinaryFormat: true })],
    ['gRPC-Web', createGrpcWebTransport({ baseUrl: base, httpVersion: '1.1' })],
  ] as const;

  test.each(webs)('%s', async (_name, transport) => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    const seen: (string | number)[] = [];
    const ofMaster: (string | number)[] = [];
    const options = { headers: own.buyer.bearer };
    const ledgers = createClient(LedgerService, transport);
    const masters = createClient(MasterService, transport);
    const reading = (async () => {
      for await (const answer of ledgers.followLedgerEvents({ ledgerId: own.ledgerId, afterSeq: 0n }, options))
        seen.push(shown(answer));
    })();
    const readingMaster = (async () => {
      for await (const answer of masters.followMasterEvents({ uuid: master.uuid, afterMasterSeq: -1n }, options))
        ofMaster.push(shown(answer));
    })();
    await expect
      .poll(() => [seen, ofMaster])
      .toEqual([
        [1, 2, 'caughtUp'],
        [2, 'caughtUp'],
      ]);
    await append(master, own.buyer, 'PACKED', { n: 1 });
    const { path, headers } = closeOf(own, own.buyer);
    await done(base, 'PATCH', path, { headers });
    await Promise.all([reading, readingMaster]);
    expect([seen, ofMaster]).toEqual([
      [1, 2, 'caughtUp', 3, 4],
      [2, 'caughtUp', 3],
    ]);
  });

  test('gRPC, with every field of an event and where to resume', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    await append(master, own.buyer, 'PACKED', { n: 1 });
    const stream = followGrpc({ ledgerId: own.ledgerId, afterSeq: 1n, verify: 'signatures' }, own.buyer);
    await expect.poll(stream.shown).toEqual([2, 3, 'caughtUp']);
    const listed = await eventsOf(base, own.buyer, own.ledgerId);
    const { value } = stream.all[1]?.message ?? {};
    expect(value).toMatchObject({
      event: { id: listed[3]?.id, hash: listed[3]?.hash, payload: expect.stringContaining('"n":1'), masterSeq: 1n },
      integrity: { verified: true, issues: [] },
    });
    expect(stream.all.map(({ resumeAfter }) => resumeAfter)).toEqual([2n, 3n, 3n]);
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    await expect.poll(stream.shown).toEqual([2, 3, 'caughtUp', 4]);
    stream.call.cancel();
    expect((await stream.ended)?.code).toBe(1);
  });
});

test('an event is read once and encoded once for each protocol, however many follow', async () => {
  await using own = await runNode({ env: { FOLLOWERS_PER_ACTOR_MAX: '40' } });
  const there = await newOrder(own.base, { keyed: false });
  const master = await newMaster(there);
  const streams = await Promise.all(
    Array.from({ length: 30 }, () =>
      liveEvents(own.base, `/v1/ledgers/${there.ledgerId}/events/follow`, there.buyer.bearer),
    ),
  );
  for (const stream of streams) await stream.through('caught_up');
  const counts = async () => {
    const text = await (await fetch(`${own.opsBase}/metrics`)).text();
    return ['events_read', 'events_encoded', 'events_sent'].map((name) =>
      Number(new RegExp(`^svc_follow_${name}_total (\\d+)`, 'm').exec(text)?.[1]),
    );
  };
  expect(await counts()).toEqual([0, 0, 0]);
  for (let n = 0; n < 10; n += 1) await append(master, there.buyer, 'COUNTED', { n });
  for (const stream of streams) for (let n = 0; n < 10; n += 1) expect((await stream.next())?.data.event).toBeTruthy();
  // The three events before them stand in the same page.
  expect(await counts()).toEqual([13, 10, 300]);
  for (const stream of streams) await stream[Symbol.asyncDispose]();
});

test('a node that stops ends each stream with a hint when to come back, spread over seconds', async () => {
  // A node of the test's own, beside a cluster too.
  const own = await runNode({ env: {} });
  const there = await newOrder(own.base, { keyed: false });
  const streams = await Promise.all(
    Array.from({ length: 20 }, () =>
      liveEvents(own.base, `/v1/ledgers/${there.ledgerId}/events/follow`, there.buyer.bearer),
    ),
  );
  for (const stream of streams) await stream.through('caught_up');
  const stopped = own[Symbol.asyncDispose]();
  const hints = new Set<unknown>();
  for (const stream of streams) {
    const last = (await stream.ended()).at(-1);
    expect(last).toMatchObject({ event: 'error', data: { error: { code: 'unavailable' } } });
    const hint = valueAt(last, 'data', 'error', 'details', 'retry_after_ms');
    expect(hint).toBeGreaterThanOrEqual(500);
    expect(hint).toBeLessThanOrEqual(10_000);
    expect(stream.raw()).toContain(`retry: ${hint}\n`);
    hints.add(hint);
  }
  expect(hints.size).toBeGreaterThan(10);
  await stopped;
});

test('streams beyond the bounds of an actor and of the node are overloaded, and counted', async () => {
  await using own = await runNode({ env: { FOLLOWERS_MAX: '3', FOLLOWERS_PER_ACTOR_MAX: '2' } });
  const there = await newOrder(own.base, { keyed: false });
  const path = `/v1/ledgers/${there.ledgerId}/events/follow`;
  const open = (by: Party) => liveEvents(own.base, path, by.bearer);
  const refusal = async (by: Party) => {
    const response = await fetch(own.base + path, { headers: by.bearer });
    const { error } = (await response.json()) as { error: { code: string; details: object } };
    return [response.status, error.code, error.details];
  };
  const streams = [await open(there.buyer), await open(there.buyer)];
  for (const stream of streams) await stream.through('caught_up');
  expect(await refusal(there.buyer)).toMatchObject([503, 'overloaded', { bound: 'FOLLOWERS_PER_ACTOR_MAX' }]);
  streams.push(await open(there.supplier));
  await streams[2]?.through('caught_up');
  expect(await refusal(there.supplier)).toMatchObject([503, 'overloaded', { bound: 'FOLLOWERS_MAX' }]);
  await streams[0]?.[Symbol.asyncDispose]();
  await expect
    .poll(async () => /^svc_followers 2$/m.test(await (await fetch(`${own.opsBase}/metrics`)).text()))
    .toBe(true);
  streams.push(await open(there.supplier));
  expect(streams[3]?.status).toBe(200);
  const metrics = await (await fetch(`${own.opsBase}/metrics`)).text();
  expect(metrics).toContain('svc_follow_refused_total{bound="FOLLOWERS_PER_ACTOR_MAX"} 1');
  expect(metrics).toContain('svc_follow_refused_total{bound="FOLLOWERS_MAX"} 1');
  for (const stream of streams) await stream[Symbol.asyncDispose]();
});

test('a refusal over gRPC has the code of the bound or the filter', async () => {
  const stream = followGrpc({ ledgerId: order.ledgerId, afterSeq: 99n }, order.buyer);
  const error = await stream.ended;
  expect(error?.code).toBe(3);
  expect(error === null ? null : infoOf(error)?.reason).toBe('invalid_argument');
});
