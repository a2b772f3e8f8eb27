import { join } from 'node:path';
import { defaultShardCount } from '../../src/actors/bounds.ts';
import { applySchema } from '../../src/store/cassandra/apply-schema.ts';
import { cassandraSettings } from '../../src/store/cassandra/settings.ts';
import { StartError } from '../../src/store/start-error.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type LocalCassandra, startCassandra } from './cassandra.ts';
import { type LocalNode, startLocalNode } from './node.ts';
import { type LocalRedis, startRedis } from './redis.ts';
import { sharedKeys } from './shared-keys.ts';

type Environment = { readonly [name: string]: string | undefined };

export interface LocalClusterOptions {
  /** Keys, logs and Cassandra's data go below it. What is there is used again. */
  readonly dir: string;
  /** How many nodes of the service. */
  readonly nodes: number;
  /** How many nodes of Cassandra: as many are the copies of the data. */
  readonly cassandraNodes: 1 | 3;
  /** Ports of the one address in front of the nodes. 0: any free one. */
  readonly port: number;
  readonly grpcPort: number;
  /** What the nodes find in their environment beside what the cluster decides: LOG_LEVEL, limits, timings, … */
  readonly env: Environment;
  /** Backends that run already, in place of own ones. */
  readonly backends?: {
    readonly redisUrl: string;
    readonly contactPoints: readonly string[];
    readonly allow: readonly string[];
    /** What they listen on beside that. */
    readonly ports?: readonly number[];
  };
  readonly keyspace?: string;
  /** Is told what is being done, a sentence each. */
  readonly tell?: (text: string) => void;
  /** Ends the start: what runs by then is stopped. */
  readonly signal?: AbortSignal;
}

/** A whole cluster as processes on the loopback. Disposing it stops everything, nodes first. */
export interface LocalCluster extends AsyncDisposable {
  /** The address in front of the nodes. */
  readonly base: string;
  readonly grpcAddress: string;
  readonly nodes: readonly LocalNode[];
  /** What a further node needs, and who looks into the cluster from the command line. */
  readonly env: Environment;
}

/** Starts Redis, Cassandra, the nodes and one address in front of them. StartError says what is missing. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { dir, tell = () => {}, signal } = options;
  const within = signal === undefined ? {} : { signal };
  const { port, grpcPort } = options;
  const host = '127.0.0.1';
  await using running = new AsyncDisposableStack();
  // First, so that a port in use is told at once.
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
  tell(await applySchema(settings, { replication, shardCount: defaultShardCount }));
  signal?.throwIfAborted();
  tell(`Starting ${options.nodes} nodes.`);
  const started = await Promise.allSettled(
    Array.from({ length: options.nodes }, (_, index) =>
      startLocalNode({ id: `node-${index + 1}`, dir, env, ...within }),
    ),
  );
  const nodes = started.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  // All at once, so that they are not handed each other's shards on the way.
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
