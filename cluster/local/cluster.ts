import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { defaultShardCount } from '../../src/actors/bounds.ts';
import { StartError } from '../../src/runtime/start-error.ts';
import { applySchema } from '../../src/store/cassandra/schema/apply-schema.ts';
import { cassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type LocalCassandra, startCassandra } from './cassandra.ts';
import { type LocalNode, startLocalNode } from './node.ts';
import { type LocalRedis, startRedis } from './redis.ts';
import { sharedKeys } from './shared-keys.ts';

type Environment = { readonly [name: string]: string | undefined };

export interface LocalClusterOptions {
  /** The directory of keys, logs and Cassandra's data. Existing files are used again. */
  readonly dir: string;
  readonly nodes: number;
  /** The number of Cassandra nodes, which is also the replication factor. */
  readonly cassandraNodes: 1 | 3;
  /** The ports of the balancer. 0: any free port. */
  readonly port: number;
  readonly grpcPort: number;
  /** The nodes' environment, such as LOG_LEVEL, limits and timings. The cluster's own variables are added to it. */
  readonly env: Environment;
  /** Backends that run already. Default: starts Redis and Cassandra. */
  readonly backends?: {
    readonly redisUrl: string;
    readonly contactPoints: readonly string[];
    readonly allow: readonly string[];
    /** Further ports that they listen on. Webhooks may not go to them. */
    readonly ports?: readonly number[];
  };
  readonly keyspace?: string;
  /** Called with a sentence for each step of the start. */
  readonly tell?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** A whole cluster as processes on the loopback. Disposing it stops everything, the nodes first. */
export interface LocalCluster extends AsyncDisposable {
  readonly base: string;
  readonly grpcAddress: string;
  readonly nodes: readonly LocalNode[];
  /** The environment for a further node, and for the command line of the cluster. */
  readonly env: Environment;
}

/** Starts Redis, Cassandra, the nodes and a balancer in front of them. Throws StartError if something is missing. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { dir, tell = () => {}, signal } = options;
  const within = signal === undefined ? {} : { signal };
  const { port, grpcPort } = options;
  const host = '127.0.0.1';
  await using running = new AsyncDisposableStack();
  // The balancer starts first, so that a port in use is reported at once.
  const front = running.use(await opened(startBalancer({ host, port, grpcPort })));
  const backends = options.backends ?? (await ownBackends(options, running));
  const given = options.env.WEBHOOK_CLOSED_PORTS;
  const closedPorts = [...(given ? [given] : []), front.port, front.grpcPort, ...(backends.ports ?? [])];
  const env: Environment = {
    ...options.env,
    REDIS_URL: backends.redisUrl,
    CASSANDRA_CONTACT_POINTS: backends.contactPoints.join(','),
    CASSANDRA_ALLOW: backends.allow.join(','),
    WEBHOOK_CLOSED_PORTS: closedPorts.join(','),
    CASSANDRA_KEYSPACE: options.keyspace ?? 'ledger_trust',
    ...sharedKeys(join(dir, 'keys')),
  };
  const settings = cassandraSettings(env);
  const replication = new Map([[settings.localDataCenter, options.cassandraNodes]]);
  tell(
    await applySchema(settings, { replication, shardCount: defaultShardCount, random: (bytes) => randomBytes(bytes) }),
  );
  signal?.throwIfAborted();
  tell(`Starting ${options.nodes} nodes.`);
  const started = await Promise.allSettled(
    Array.from({ length: options.nodes }, (_, index) =>
      startLocalNode({ id: `node-${index + 1}`, dir, env, ...within }),
    ),
  );
  const nodes = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  // All nodes stop at once, so that none hands its shards to another one that is about to stop.
  running.defer(async () => void (await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()))));
  const failed = started.find((start) => start.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  for (const { at } of nodes) front.add(at);
  const stack = running.move();
  return {
    base: `http://${host}:${front.port}`,
    grpcAddress: `${host}:${front.grpcPort}`,
    nodes,
    env,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function opened(start: Promise<Balancer>): Promise<Balancer> {
  try {
    return await start;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE' && 'port' in error)
      throw new StartError(`Set PORT and GRPC_PORT to free ports: something else listens on ${error.port}.`, error);
    throw error;
  }
}

async function ownBackends(
  { dir, cassandraNodes, tell = () => {}, signal }: LocalClusterOptions,
  running: AsyncDisposableStack,
): Promise<NonNullable<LocalClusterOptions['backends']>> {
  tell('Starting Redis and Cassandra; the first time Maven fetches Cassandra.');
  const within = signal === undefined ? {} : { signal };
  const redis: LocalRedis = running.use(await startRedis({ dir: join(dir, 'redis') }));
  const cassandra: LocalCassandra = running.use(
    await startCassandra({ dir: join(dir, 'cassandra'), nodes: cassandraNodes, ...within }),
  );
  return { redisUrl: redis.url, contactPoints: cassandra.contactPoints, allow: [], ports: [cassandra.storagePort] };
}
