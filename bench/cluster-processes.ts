import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LocalCassandra, startCassandra } from '../cluster/local/cassandra.ts';
import type { LocalNode } from '../cluster/local/node.ts';
import { startRedis } from '../cluster/local/redis.ts';
import { defaultShardCount } from '../src/actors/bounds.ts';
import { shardOf } from '../src/actors/routing/shard.ts';
import { ownCheckout } from './server-process.ts';

/** Three nodes, Redis and one Cassandra, each a process of its own on this machine. */
export interface BenchCluster extends AsyncDisposable {
  readonly nodes: readonly LocalNode[];
  readonly cassandraPid: number;
}

const nodeCount = 3;
/** Five times Cassandra's default: a shared host may pause for seconds. */
const writeMaxMs = 10_000;
const settleMaxMs = 90_000;
const lookEveryMs = 1_000;
/** The same owners in so many looks: nothing moves any more. */
const looksSettled = 4;

/** One Cassandra with all of its JIT. */
export function startBenchCassandra(dir: string): Promise<LocalCassandra> {
  return startCassandra({ dir, nodes: 1, fullJit: true, writeMaxMs });
}

/** Starts everything as `npm run cluster:local` does. */
export async function startBenchCluster(dir: string, profileDir: string | null): Promise<BenchCluster> {
  await using running = new AsyncDisposableStack();
  const cassandra = running.use(await startBenchCassandra(join(dir, 'cassandra')));
  const cluster = running.use(await startBenchNodes(dir, cassandra, { profileDir }));
  const stack = running.move();
  return { ...cluster, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

interface BenchNodesOptions {
  /** Each node writes a CPU profile there when it stops; null: none. */
  readonly profileDir?: string | null;
  /** The directory of another version, with its packages and generated code. Default: this one. */
  readonly checkout?: string;
  readonly keyspace?: string;
}

/** Starts a Redis and three nodes on a Cassandra, with their keys and logs in `dir`, and waits until no shard moves. */
export async function startBenchNodes(
  dir: string,
  cassandra: LocalCassandra,
  { profileDir = null, checkout = ownCheckout, keyspace = 'ledger_trust' }: BenchNodesOptions,
): Promise<BenchCluster> {
  const { startLocalCluster }: typeof import('../cluster/local/cluster.ts') = await import(
    join(checkout, 'cluster/local/cluster.ts')
  );
  await using running = new AsyncDisposableStack();
  const redis = running.use(await startRedis({ dir: join(dir, 'redis') }));
  const profile = profileDir === null ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileDir}` };
  const { nodes } = running.use(
    await startLocalCluster({
      dir,
      nodes: nodeCount,
      cassandraNodes: 1,
      port: 0,
      grpcPort: 0,
      env: { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn', ...profile },
      backends: { redisUrl: redis.url, contactPoints: cassandra.contactPoints, allow: [] },
      keyspace,
    }),
  );
  await untilSettled(nodes);
  const stack = running.move();
  const cassandraPid = cassandra.nodes[0]?.process.pid ?? 0;
  return { nodes, cassandraPid, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** The node that runs a ledger's shard, and one that does not. */
export async function ownerAndOther(
  nodes: readonly LocalNode[],
  ledgerId: string,
): Promise<{ readonly owner: LocalNode; readonly other: LocalNode }> {
  const [first] = nodes;
  if (first === undefined) throw new Error('there are no nodes');
  const { owners } = await placementOf(first);
  const ownerId = owners[String(shardOf(ledgerId, defaultShardCount))];
  const owner = nodes.find(({ id }) => id === ownerId);
  const other = nodes.find(({ id }) => id !== ownerId);
  if (owner === undefined || other === undefined) throw new Error(`nobody owns ledger ${ledgerId}`);
  return { owner, other };
}

/** What the internal page says of placement. */
interface PlacementView {
  readonly owners: { readonly [shard: string]: string };
  readonly moving: readonly number[];
}

async function placementOf(node: LocalNode): Promise<PlacementView> {
  const response = await fetch(`${node.internalBase}/cluster`);
  return (await response.json()) as PlacementView;
}

/** Until every shard has an owner, every node has its part, and none moves. */
async function untilSettled(nodes: readonly LocalNode[]): Promise<void> {
  const began = performance.now();
  let before = '';
  for (let looks = 0; looks < looksSettled; ) {
    if (performance.now() - began > settleMaxMs) throw new Error('the shards of the cluster do not come to rest');
    await sleep(lookEveryMs);
    const views = await Promise.all(nodes.map(placementOf));
    const owners = views[0]?.owners ?? {};
    const held = new Set(Object.values(owners));
    const atRest = Object.keys(owners).length === defaultShardCount && held.size === nodes.length;
    const now = JSON.stringify(owners);
    looks = atRest && now === before && views.every(({ moving }) => moving.length === 0) ? looks + 1 : 0;
    before = now;
  }
}
