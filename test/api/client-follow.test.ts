import { afterAll, describe, expect, test } from 'vitest';
import { createClient, type FollowedEvent, type FollowOptions, type FollowRequest } from '../../src/client/index.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, closeOf, newMaster, newOrder, newParty, otherOrder, type Party } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const { node, base, order } = await nodeWithOrder();
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  await Promise.all(closing.map((close) => close()));
});

function clientOf(by: Party, transport: 'rest' | 'grpc', at = { base, grpcAddress: node.grpcAddress }) {
  const apiKey = by.bearer.authorization?.replace('Bearer ', '') ?? '';
  const client = createClient({ baseUrl: at.base, grpcUrl: `http://${at.grpcAddress}`, transport, apiKey });
  closing.push(() => client.close());
  return client;
}

/** Follows on its own; what came is in `events`. */
function followed(by: Party, transport: 'rest' | 'grpc', request: FollowRequest, options: FollowOptions = {}) {
  const events: FollowedEvent[] = [];
  const heads: number[] = [];
  const leave = new AbortController();
  const ended = (async () => {
    const all = { signal: leave.signal, onCaughtUp: ({ seq }: { readonly seq: number }) => void heads.push(seq) };
    for await (const event of clientOf(by, transport).follow(request, { ...all, ...options })) events.push(event);
  })();
  ended.catch(() => {});
  return { events, heads, leave, ended, seqs: () => events.map(({ seq }) => seq) };
}

const close = async (own: Awaited<ReturnType<typeof otherOrder>>) => {
  const { path, headers } = closeOf(own, own.buyer);
  await done(base, 'PATCH', path, { headers });
};

describe.each(['rest', 'grpc'] as const)('over %s', (transport) => {
  test('a ledger comes from its first event on, each event verified, and ends behind LEDGER_CLOSED', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    const stream = followed(own.supplier, transport, { ledgerId: own.ledgerId, after: -1 });
    await expect.poll(() => stream.heads).toEqual([2]);
    await append(master, own.buyer, 'PACKED', { n: 1 });
    await expect.poll(stream.seqs).toEqual([0, 1, 2, 3]);
    await close(own);
    await stream.ended;
    expect(stream.seqs()).toEqual([0, 1, 2, 3, 4]);
    const whole = { contentHash: true, chainHash: true };
    expect(stream.events[0]?.checks).toEqual({ ...whole, actorSignature: false, authoritySeal: true });
    expect(stream.events[3]?.checks).toEqual({ ...whole, actorSignature: true, authoritySeal: false });
    expect(stream.heads).toEqual([2]);
  });

  test('only new events come without after, and every hash of them is recomputed', async () => {
    const own = await otherOrder(order);
    const master = await newMaster(own);
    await append(master, own.buyer, 'PACKED', { n: 1 });
    const stream = followed(own.supplier, transport, { ledgerId: own.ledgerId });
    await expect.poll(() => stream.heads).toEqual([3]);
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    await expect.poll(stream.seqs).toEqual([4]);
    expect(stream.events[0]?.checks).toMatchObject({ contentHash: true, chainHash: true, actorSignature: true });
    const [last] = stream.events;
    stream.leave.abort(new Error('enough'));
    await expect(stream.ended).rejects.toThrow('enough');
    await append(master, own.buyer, 'ARRIVED', { n: 3 });
    const resumed = followed(own.supplier, transport, { ledgerId: own.ledgerId, after: last ?? -1 });
    await expect.poll(resumed.seqs).toEqual([5]);
    const other = { seq: 4, masterSeq: 2, hash: '0'.repeat(64) };
    const forked = followed(own.supplier, transport, { ledgerId: own.ledgerId, after: other });
    await expect(forked.ended).rejects.toMatchObject({ code: 'integrity_failed' });
    const beyond = followed(own.supplier, transport, { ledgerId: own.ledgerId, after: 99 });
    await expect(beyond.ended).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'after' } });
    resumed.leave.abort();
  });

  test('a master comes alone, and ends with its ledger', async () => {
    const own = await otherOrder(order);
    const [master, other] = [await newMaster(own), await newMaster(own)];
    await append(other, own.buyer, 'PACKED', { n: 1 });
    await append(master, own.buyer, 'PACKED', { n: 1 });
    const stream = followed(own.supplier, transport, { masterId: master.uuid, ledgerId: own.ledgerId, after: 0 });
    await expect.poll(() => stream.heads).toHaveLength(1);
    expect(stream.events.map(({ masterSeq, checks }) => [masterSeq, checks.contentHash])).toEqual([[1, true]]);
    await append(master, own.buyer, 'SHIPPED', { n: 2 });
    await close(own);
    await stream.ended;
    expect(stream.events.map(({ masterSeq }) => masterSeq)).toEqual([1, 2]);
  });

  test('what is closed ends at once for who begins behind its last event, revocations included', async () => {
    const own = await newOrder(base, { keyed: false });
    const [master, closed] = [await newMaster(own), await newMaster(own)];
    const delegate = await newParty(base, { keyed: false });
    const grant = { headers: own.buyer.bearer, body: { actor_id: delegate.actorId, access: 'read' } };
    const links = [];
    for (const { uuid } of [master, closed])
      links.push((await done(base, 'POST', `/v1/traceledger/master/${uuid}/access`, grant)).text('link_id'));
    await done(base, 'PATCH', `/v1/traceledger/master/${closed.uuid}/close`, { headers: own.buyer.bearer });
    await close(own);
    const revoked = `/v1/traceledger/master/${closed.uuid}/access/${links.at(-1)}`;
    await done(base, 'DELETE', revoked, { headers: own.buyer.bearer });
    const { ledgerId } = own;
    const follows = [
      [own.supplier, { ledgerId }],
      [own.supplier, { masterId: master.uuid }],
      [own.supplier, { masterId: closed.uuid }],
      [delegate, { masterId: master.uuid }],
      [delegate, { masterId: master.uuid, ledgerId, after: 1 }],
    ] as const;
    for (const [by, request] of follows) {
      const stream = followed(by, transport, request);
      await stream.ended;
      expect([stream.seqs(), stream.heads.length]).toEqual([[], 1]);
    }
  });

  test('a delegate of one master follows the ledger as a segment, until the grant is revoked', async () => {
    const own = await otherOrder(order);
    const [master, other] = [await newMaster(own), await newMaster(own)];
    const delegate = await newParty(base, { keyed: false });
    const grant = { headers: own.buyer.bearer, body: { actor_id: delegate.actorId, access: 'read' } };
    const link = (await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, grant)).text('link_id');
    await append(other, own.buyer, 'PACKED', { n: 1 });
    await append(master, own.buyer, 'PACKED', { n: 1 });
    const strict = followed(delegate, transport, { ledgerId: own.ledgerId, after: -1 });
    await expect(strict.ended).rejects.toMatchObject({
      code: 'integrity_failed',
      message: expect.stringContaining('as a segment'),
      details: { issues: [{ type: 'missing_event' }] },
    });
    const stream = followed(delegate, transport, { ledgerId: own.ledgerId, after: -1, segment: true });
    await expect.poll(stream.seqs).toEqual([0, 1, 2, 4, 6]);
    expect(stream.events.every(({ checks }) => checks.contentHash)).toBe(true);
    await done(base, 'DELETE', `/v1/traceledger/master/${master.uuid}/access/${link}`, own.buyer);
    await expect(stream.ended).rejects.toMatchObject({ code: 'permission_denied' });
    expect(stream.seqs()).toEqual([0, 1, 2, 4, 6]);
  });

  test('a delegate that is granted another master meanwhile gets its events from then on', async () => {
    const own = await newOrder(base, { keyed: false });
    const [master, other] = [await newMaster(own), await newMaster(own)];
    const delegate = await newParty(base, { keyed: false });
    const grant = { headers: own.buyer.bearer, body: { actor_id: delegate.actorId, access: 'read' } };
    await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, grant);
    await append(other, own.buyer, 'PACKED', { n: 1 });
    const stream = followed(delegate, transport, { ledgerId: own.ledgerId, after: -1, segment: true });
    await expect.poll(() => stream.heads).toEqual([4]);
    await done(base, 'POST', `/v1/traceledger/master/${other.uuid}/access`, grant);
    await append(other, own.buyer, 'SHIPPED', { n: 2 });
    await close(own);
    await stream.ended;
    expect(stream.seqs()).toEqual([0, 1, 2, 4, 6, 7, 8]);
  });

  test('a client that is closed ends what it follows', async () => {
    const client = clientOf(order.buyer, transport);
    const stream = client.follow({ ledgerId: order.ledgerId })[Symbol.asyncIterator]();
    const next = stream.next();
    next.catch(() => {});
    setTimeout(() => void client.close(), 200);
    await expect(next).rejects.toMatchObject({ code: 'not_sent' });
  });
});

test('followers over REST and gRPC go on behind their last event when the node was killed and started again', async () => {
  const dataDir = suiteDir();
  const first = await startNodeProcess({ DATA_DIR: dataDir });
  const portOf = (address: string) => String(address.split(':').at(-1));
  const env = { PORT: portOf(first.base), GRPC_PORT: portOf(first.grpcAddress) };
  const there = await newOrder(first.base, { keyed: false });
  const master = await newMaster(there);
  await append(master, there.buyer, 'BEFORE', { n: 1 });
  const streams = (['rest', 'grpc'] as const).map((transport) => {
    const client = clientOf(there.supplier, transport, first);
    const events: FollowedEvent[] = [];
    const errors: string[] = [];
    const ended = (async () => {
      const options = {
        onRetry: ({ error }: { readonly error: { readonly code: string } }) => void errors.push(error.code),
      };
      for await (const event of client.follow({ ledgerId: there.ledgerId, after: -1 }, options)) events.push(event);
    })();
    return { ended, errors, seqs: () => events.map(({ seq }) => seq) };
  });
  for (const { seqs } of streams) await expect.poll(seqs).toEqual([0, 1, 2, 3]);
  await first.kill();
  for (const { errors } of streams) await expect.poll(() => errors.length).toBeGreaterThan(1);
  await using second = await runNode({ dataDir, env });
  await append(master, there.buyer, 'BEHIND', { n: 2 });
  const { path, headers } = closeOf(there, there.buyer);
  await done(second.base, 'PATCH', path, { headers });
  for (const { ended, errors, seqs } of streams) {
    await ended;
    expect(seqs()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(new Set(errors)).toEqual(new Set(['connection_lost']));
  }
});
