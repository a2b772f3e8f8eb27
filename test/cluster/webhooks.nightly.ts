import { afterAll, beforeAll, expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, type Master, newMaster, newOrder, type Order, type Party } from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';
import { eventually, receiveWebhooks, type WebhookReceiver } from '../support/webhook-receiver.ts';
import { type ClusterUnderTest, leaseTtlMs, startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const orderCount = 4;
const balancedMaxMs = 30_000;
const callMaxMs = 5_000;
/** With 4 attempts at a time, a target is slower than the appends, so that deliveries wait when the fault begins. */
const slowAnswerMs = 250;
/** The events of each ledger before the fault, and after it. */
const eventsAround = 10;

interface Written {
  readonly order: Order;
  readonly master: Master;
  /** Ids of the acknowledged events. */
  readonly answered: Set<string>;
}

interface Subscription {
  readonly id: string;
  readonly owner: Party;
  /** The path of its target. */
  readonly path: string;
  readonly written: Written;
}

await describeOnCassandra('webhooks of a cluster of three', (address) => {
  let cluster: ClusterUnderTest;
  let receiver: WebhookReceiver;
  const all: Written[] = [];
  const subscriptions: Subscription[] = [];
  /** The nodes that serve calls. */
  let nodes: readonly NodeUnderTest[] = [];

  const baseOf = (at: number): string => nodes[at % nodes.length]?.baseUrl ?? '';
  const deliveriesOf = async ({ id, owner }: Subscription): Promise<Fields[]> => {
    const path = `/v1/webhooks/${id}/deliveries?limit=1000`;
    return (await done(baseOf(0), 'GET', path, owner)).rows('deliveries');
  };
  /** Returns the recorded deliveries as path and event id. */
  const recorded = async (): Promise<Set<string>> => {
    const found = new Set<string>();
    for (const subscription of subscriptions)
      for (const { status, event_id } of await deliveriesOf(subscription))
        if (status === 'DELIVERED') found.add(`${subscription.path} ${event_id}`);
    return found;
  };
  const arrivedFrom = (place: number) => receiver.received.slice(place).map(({ path, event }) => `${path} ${event.id}`);

  /** Appends to all ledgers in order, with retries, until `stop`. */
  const write = () => {
    let stopped = false;
    const writers = all.map(async ({ order, master, answered }, at) => {
      for (let n = at; !stopped; ) {
        const headers = { 'idempotency-key': `${order.ledgerId}-${answered.size}` };
        const there = { ...master, base: baseOf(n) };
        const called = append(there, order.supplier, 'STEP', { n: answered.size }, { headers }).catch(() => null);
        // A paused node does not answer.
        const answer = await Promise.race([called, afterMs(callMaxMs).then(() => null)]);
        if (answer?.status === 200) answered.add(answer.text('event_id'));
        n += 1;
      }
    });
    return {
      stop: () => {
        stopped = true;
        return Promise.all(writers);
      },
    };
  };
  /** Waits until every acknowledged event has arrived and is recorded. First arrivals must be in the ledger's order. */
  const untilAllHasCome = async () => {
    receiver.answerAfterMs = 0;
    for (const subscription of subscriptions) {
      const { path, written } = subscription;
      const mine = () => receiver.received.filter((webhook) => webhook.path === path).map(({ event }) => event);
      const missing = () => {
        const come = new Set(mine().map(({ id }) => id));
        return [...written.answered].filter((id) => !come.has(id));
      };
      await eventually(
        async () => missing(),
        (ids) => ids.length === 0,
      );
      const deliveries = await eventually(
        () => deliveriesOf(subscription),
        (listed) => listed.every(({ status }) => status === 'DELIVERED'),
      );
      expect(new Set(deliveries.map(({ event_id }) => event_id)).size).toBe(deliveries.length);
      expect(deliveries.length).toBeGreaterThanOrEqual(written.answered.size);
      const seqs = [...new Set(mine().map(({ seq }) => Number(seq)))];
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    }
  };

  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, cassandra: address });
    nodes = [...cluster.nodes];
    await cluster.untilBalanced(balancedMaxMs);
    receiver = await receiveWebhooks();
    for (let at = 0; at < orderCount; at++) {
      const order = await withRetries(() => newOrder(baseOf(at), { keyed: false }));
      const written = { order, master: await withRetries(() => newMaster(order)), answered: new Set<string>() };
      all.push(written);
      for (const [owner, asks] of [
        [order.buyer, {}],
        [order.supplier, { ledger_id: order.ledgerId }],
      ] as const) {
        const path = `/hook/${subscriptions.length}`;
        const body = { url: new URL(path, receiver.url).href, event_types: ['STEP'], ...asks };
        const made = await done(baseOf(at + 1), 'POST', '/v1/webhooks', owner, body);
        subscriptions.push({ id: made.text('id'), owner, path, written });
      }
    }
  }, 120_000);
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await receiver?.[Symbol.asyncDispose]();
  }, 60_000);

  const leastAnswered = () => Math.min(...all.map(({ answered }) => answered.size));
  const untilMoreAnswered = (count: number) => {
    const before = leastAnswered();
    return eventually(
      async () => leastAnswered(),
      (least) => least >= before + count,
    );
  };

  /** Runs `fault` on the owner of the first ledger while events are appended and deliveries wait. */
  const underLoad = async (fault: (victim: NodeUnderTest) => Promise<void>): Promise<NodeUnderTest> => {
    const victim = await cluster.ownerOf(all[0]?.order.ledgerId ?? '');
    if (victim === null) throw new Error('nobody owns the ledger');
    receiver.answerAfterMs = slowAnswerMs;
    const writing = write();
    try {
      await untilMoreAnswered(eventsAround);
      nodes = cluster.nodes.filter((node) => node !== victim);
      await fault(victim);
      await untilMoreAnswered(eventsAround);
    } finally {
      await writing.stop();
    }
    await untilAllHasCome();
    return victim;
  };

  test('an owner that sleeps longer than its lease causes no missing or repeated delivery', async () => {
    const victim = await underLoad(async (owner) => {
      // All attempts under way arrive before the pause: an attempt that was not sent yet could arrive twice.
      receiver.answerAfterMs = leaseTtlMs;
      await afterMs(3 * slowAnswerMs);
      owner.pause();
      receiver.answerAfterMs = slowAnswerMs;
      await afterMs(leaseTtlMs + 1_500);
    });
    const delivered = await recorded();
    const wokenAt = receiver.received.length;
    victim.resume();
    await victim.untilReady();
    await afterMs(2_000);
    expect(arrivedFrom(wokenAt).filter((one) => delivered.has(one))).toEqual([]);
    nodes = [...cluster.nodes];
  }, 60_000);

  test('after kill -9 of the owner every answered event arrives, and no recorded delivery is repeated', async () => {
    let delivered: ReadonlySet<string> = new Set();
    let killedAt = 0;
    await underLoad(async (owner) => {
      delivered = await recorded();
      await owner.kill();
      killedAt = receiver.received.length;
    });
    expect(delivered.size).toBeGreaterThan(0);
    expect(arrivedFrom(killedAt).filter((one) => delivered.has(one))).toEqual([]);
  }, 60_000);
});
