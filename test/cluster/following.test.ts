import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createClient, type FollowedEvent } from '../../src/client/index.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { liveEvents } from '../support/live-events.ts';
import { isNightly } from '../support/nightly.ts';
import { append, bearerOf, type Master, newMaster, newOrder, newParty, type Order } from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const balancedMaxMs = 60_000;
const startMaxMs = 120_000;
/** A client comes back after a hint of up to 10 s. */
const reached = { timeout: 60_000 };
const eventsOfATest = 6;
/** The decided time is a second. By day other suites run beside this one. */
const revokedMaxMs = isNightly ? 1_000 : 5_000;

interface Reader {
  readonly name: string;
  readonly events: readonly FollowedEvent[];
  /** The seqs of all events, or why following ended. */
  seqs(): number[] | string;
}

await describeOnCassandra('followers of a ledger in a cluster of three', (address) => {
  let cluster: ClusterUnderTest;
  let order: Order;
  let master: Master;
  let appended = 0;
  const leave = new AbortController();
  const readers: Reader[] = [];
  const closing: (() => Promise<void>)[] = [];

  /** Follows from the first event on. The client verifies each event, and fails if one is missing or comes again. */
  const read = (node: NodeUnderTest, transport: 'rest' | 'grpc'): Reader => {
    const client = createClient({
      baseUrl: node.baseUrl,
      grpcUrl: node.grpcUrl,
      transport,
      apiKey: order.buyer.apiKey,
    });
    closing.push(() => client.close());
    const events: FollowedEvent[] = [];
    let failure: string | null = null;
    const follow = async () => {
      const stream = client.follow({ ledgerId: order.ledgerId, after: -1 }, { signal: leave.signal });
      for await (const event of stream) events.push(event);
    };
    follow().catch((error: unknown) => {
      failure = String(error);
    });
    const seqs = () => failure ?? events.map(({ seq }) => seq);
    return { name: `${transport} at ${node.id}`, events, seqs };
  };
  /** Appends one event, by any node that takes it. Resolves with its seq. */
  const write = async (nodes: readonly NodeUnderTest[] = cluster.nodes): Promise<number> => {
    const n = appended;
    appended += 1;
    const headers = { 'idempotency-key': `followed-${n}` };
    let attempt = n;
    const answer = await withRetries(async () => {
      const { baseUrl } = nodes[attempt++ % nodes.length] ?? cluster.nodeAt(0);
      const made = await append({ ...master, base: baseUrl }, order.buyer, 'NOTED', { n }, { headers }).catch(
        (error: unknown) => {
          // Nothing listens at a node that is starting.
          throw error instanceof TypeError ? new Error('"code":"unavailable"', { cause: error }) : error;
        },
      );
      if (made.status !== 200) throw new Error(made.raw);
      return made;
    });
    return Number(answer.body.seq);
  };
  /** Waits until each reader has every event up to `head`, once and in order. */
  const untilAllHave = async (head: number) => {
    const whole = Array.from({ length: head + 1 }, (_, seq) => seq);
    for (const { name, seqs } of readers) await expect.poll(seqs, { ...reached, message: name }).toEqual(whole);
  };
  const owner = async (): Promise<NodeUnderTest> => {
    await expect.poll(() => cluster.ownerOf(order.ledgerId), reached).not.toBeNull();
    return (await cluster.ownerOf(order.ledgerId)) ?? cluster.nodeAt(0);
  };
  /** How many heads each node but the owner has learned from a source. */
  const learned = (owning: NodeUnderTest, source: 'own' | 'peer' | 'store'): Promise<number[]> => {
    const others = cluster.nodes.filter((node) => node !== owning);
    return Promise.all(others.map((node) => node.counted(`svc_follow_heads_total{source="${source}"}`)));
  };
  /** Appends events at the owner, each when all readers have the one before. Resolves with what `learned` then adds. */
  const writeOneByOne = async (owning: NodeUnderTest, source: 'peer' | 'store'): Promise<number[]> => {
    const before = await learned(owning, source);
    for (let n = 0; n < eventsOfATest; n += 1) await untilAllHave(await write([owning]));
    return (await learned(owning, source)).map((count, at) => count - (before[at] ?? 0));
  };
  /** Appends until `work` has ended, and then one event more. Resolves with the head. */
  const writeDuring = async (work: () => Promise<unknown>): Promise<number> => {
    let isOver = false;
    const over = work().finally(() => {
      isOver = true;
    });
    // It is awaited below.
    over.catch(() => {});
    while (!isOver) await write();
    await over;
    return write();
  };

  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(balancedMaxMs);
    order = await withRetries(() => newOrder(cluster.nodeAt(0).baseUrl, { keyed: false }));
    master = await withRetries(() => newMaster(order));
    for (const node of cluster.nodes)
      for (const transport of ['rest', 'grpc'] as const) readers.push(read(node, transport));
  });
  afterAll(async () => {
    leave.abort();
    await Promise.all(closing.map((close) => close()));
    await cluster?.[Symbol.asyncDispose]();
  });

  test('get every event once and in order, at the owner and at the other nodes', async () => {
    let head = 0;
    for (let n = 0; n < 20; n += 1) head = await write();
    await untilAllHave(head);
    for (const { events } of readers)
      expect(events.every(({ checks }) => checks.contentHash && checks.chainHash)).toBe(true);
  });

  test('hear of commits from the owner', async () => {
    const owning = await owner();
    const before = await learned(owning, 'peer');
    // Until its streams to the other nodes are open, which takes a busy machine seconds, they ask the store.
    const heard = async () => {
      await untilAllHave(await write([owning]));
      const now = await learned(owning, 'peer');
      return now.every((count, at) => count > (before[at] ?? 0));
    };
    await expect.poll(heard, reached).toBe(true);
    const counts = await writeOneByOne(owning, 'peer');
    // Now and then a busy node asks the store before it hears the owner.
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(eventsOfATest / 2);
  });

  test('get events from the store while the stream from the owner is silent', async () => {
    const owning = await owner();
    owning.fromPeers.set('silent');
    try {
      const heard = await learned(owning, 'peer');
      const counts = await writeOneByOne(owning, 'store');
      expect(await learned(owning, 'peer')).toEqual(heard);
      expect(Math.min(...counts)).toBe(eventsOfATest);
    } finally {
      owning.fromPeers.set('open');
    }
  });

  test('end soon after the revocation of their API key at another node', async () => {
    const [there, elsewhere] = [cluster.nodeAt(0).baseUrl, cluster.nodeAt(1).baseUrl];
    const headers = order.buyer.bearer;
    const made = await done(there, 'POST', '/v1/developer/keys', { headers, body: { name: 'revoked' } });
    const path = `/v1/ledgers/${order.ledgerId}/events/follow`;
    await using stream = await liveEvents(elsewhere, path, bearerOf(made.text('api_key')));
    await stream.through('caught_up');
    await done(there, 'DELETE', `/v1/developer/keys/${made.text('key_id')}`, { headers });
    const revokedMs = performance.now();
    expect((await stream.ended()).at(-1)).toMatchObject({
      event: 'error',
      data: { error: { code: 'invalid_api_key' } },
    });
    expect(performance.now() - revokedMs).toBeLessThan(revokedMaxMs);
  });

  test('end before the revocation of their grant, which another node takes', async () => {
    const [there, elsewhere] = [cluster.nodeAt(1).baseUrl, cluster.nodeAt(2).baseUrl];
    const delegate = await newParty(there, { keyed: false });
    const link = `/v1/traceledger/master/${master.uuid}/access`;
    const headers = order.buyer.bearer;
    const body = { actor_id: delegate.actorId, access: 'read' };
    const made = await done(there, 'POST', link, { headers, body });
    const path = `/v1/traceledger/master/${master.uuid}/events/follow`;
    await using stream = await liveEvents(elsewhere, path, delegate.bearer);
    await stream.through('caught_up');
    const before = await write();
    await done(there, 'DELETE', `${link}/${made.text('link_id')}`, { headers });
    const revokedMs = performance.now();
    const behind = await write();
    const all = await stream.ended();
    expect(performance.now() - revokedMs).toBeLessThan(revokedMaxMs);
    expect(all.at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'permission_denied' } } });
    const seqs = all.filter(({ event }) => event === 'event').map(({ data }) => Number((data.event as Fields).seq));
    // Nothing from the revocation on. It may also overtake the event before it.
    expect(Math.max(...seqs, before)).toBe(before);
    expect(behind).toBe(before + 2);
  });

  test.each([
    ['SIGTERM', (node: NodeUnderTest) => node.terminate()],
    ['kill -9', (node: NodeUnderTest) => node.kill()],
  ] as const)('get every event once and in order while the owner ends by %s and starts again', async (_, end) => {
    const ending = await owner();
    const head = await writeDuring(async () => {
      await end(ending);
      await write();
      await ending.start({ ready: false });
      await ending.untilReady(startMaxMs);
    });
    await untilAllHave(head);
  });
});
