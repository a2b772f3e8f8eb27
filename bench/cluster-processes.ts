import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCassandra } from '../cluster/local/cassandra.ts';
import { startLocalCluster } from '../cluster/local/cluster.ts';
import type { LocalNode } from '../cluster/local/node.ts';
import { startRedis } from '../cluster/local/redis.ts';
import { defaultShardCount } from '../src/actors/bounds.ts';
import { shardOf } from '../src/actors/routing/shard.ts';

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

/**
 * Starts everything as `npm run cluster:local` does, Cassandra with all of its JIT, and waits until the shards have
 * come to rest. `profileDir`: each node writes a CPU profile there when it stops.
 */
export async function startBenchCluster(dir: string, profileDir: string | null): Promise<BenchCluster> {
  await using running = new AsyncDisposableStack();
  const redis = running.use(await startRedis({ dir: join(dir, 'redis') }));
  const cassandra = running.use(
    await startCassandra({ dir: join(dir, 'cassandra'), nodes: 1, fullJit: true, writeMaxMs }),
  );
  const profile = profileDir === null ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileDir}` };
  const cluster = running.use(
    await startLocalCluster({
      dir,
      nodes: nodeCount,
      cassandraNodes: 1,
      port: 0,
      grpcPort: 0,
      env: { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn', ...profile },
      backends: { redisUrl: redis.url, contactPoints: cassandra.contactPoints, allow: [] },
    }),
  );
  await untilSettled(cluster.nodes);
  const stack = running.move();
  return {
    nodes: cluster.nodes,
    cassandraPid: cassandra.nodes[0]?.process.pid ?? 0,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
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
