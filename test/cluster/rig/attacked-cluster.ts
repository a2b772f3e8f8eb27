import { expect } from 'vitest';
import type { PeerSecurity } from '../../../cluster/peers/security.ts';
import type { CassandraAddress } from '../../support/backends/backend.ts';
import { append, eventsOf, type Master, newMaster, newOrder, type Order } from '../../support/parties.ts';
import type { Fields, RestAnswer } from '../../support/parties-rest.ts';
import { type ClusterUnderTest, startCluster } from './cluster-under-test.ts';
import type { NodeUnderTest } from './node-under-test.ts';
import { isRetryable, withRetries } from './with-retries.ts';

export const movedMaxMs = 20_000;

export interface Pair {
  readonly order: Order;
  readonly master: Master;
}

export interface AttackedCluster extends AsyncDisposable {
  readonly cluster: ClusterUnderTest;
  readonly security: PeerSecurity;
  /** The ledger that a node owned when the cluster had started, with a master. */
  pairOf(node: NodeUnderTest): Pair;
  /** Appends once through a node, with `text` as idempotency key. */
  note(node: NodeUnderTest, pair: Pair, text?: string): Promise<RestAnswer>;
  /** Appends through a node, and repeats the call while the answer allows it. */
  noteAgain(node: NodeUnderTest, pair: Pair, text?: string): Promise<RestAnswer>;
  notesIn(node: NodeUnderTest, pair: Pair): Promise<unknown[]>;
  /** Expects that every node is ready and appends to the ledger of every node. */
  expectAllWell(): Promise<void>;
}

/** Starts three nodes, and has each own a ledger. `prepare` runs before the ledgers are made. */
export async function startAttackedCluster(
  cassandra: CassandraAddress,
  prepare: (cluster: ClusterUnderTest) => Promise<void> = async () => {},
): Promise<AttackedCluster> {
  // No attack may end a node that has little memory.
  const env = {
    NODE_OPTIONS: `--import=${new URL('./shifted-clock.ts', import.meta.url)} --max-old-space-size=256`,
  };
  const cluster = await startCluster({ nodes: 3, cassandra, env });
  const owned = new Map<string, Pair>();
  try {
    await cluster.untilBalanced(movedMaxMs);
    await prepare(cluster);
    while (owned.size < 3) {
      const order = await withRetries(() => newOrder(cluster.nodeAt(0).baseUrl));
      const owner = await cluster.ownerOf(order.ledgerId);
      if (owner === null || owned.has(owner.id)) continue;
      owned.set(owner.id, { order, master: await withRetries(() => newMaster(order)) });
    }
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
  let notes = 0;
  const note = ({ baseUrl }: NodeUnderTest, { order, master }: Pair, text = `note ${++notes}`) =>
    append(
      { ...master, base: baseUrl },
      order.buyer,
      'NOTED',
      { note: text },
      { headers: { 'idempotency-key': text } },
    );
  const noteAgain = (node: NodeUnderTest, pair: Pair, text?: string) =>
    withRetries(async () => {
      const answer = await note(node, pair, text);
      if (isRetryable(answer.raw)) throw new Error(answer.raw);
      return answer;
    });
  return {
    cluster,
    security: { tls: null, secret: cluster.commonEnv.CLUSTER_SECRET ?? '' },
    pairOf({ id }) {
      const pair = owned.get(id);
      if (pair === undefined) throw new Error(`${id} has no ledger`);
      return pair;
    },
    note,
    noteAgain,
    notesIn: async ({ baseUrl }, { order }) =>
      (await eventsOf(baseUrl, order.buyer, order.ledgerId)).map(({ payload }) => (payload as Fields).note),
    async expectAllWell() {
      for (const node of cluster.nodes) {
        await node.untilReady(10_000);
        for (const pair of owned.values()) expect(await noteAgain(node, pair)).toMatchObject({ status: 200 });
      }
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

export const portOf = (url: string) => Number(new URL(url).port);
