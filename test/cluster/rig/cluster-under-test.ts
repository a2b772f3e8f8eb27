import { execFile } from 'node:child_process';
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import cassandra from 'cassandra-driver';
import { type LocalCassandra, startCassandra } from '../../../cluster/local/cassandra.ts';
import { afterMs } from '../../../cluster/local/ports.ts';
import { type LocalRedis, startRedis } from '../../../cluster/local/redis.ts';
import { shardOf } from '../../../src/actors/routing/shard.ts';
import { publicKeyBase64 } from '../../../src/client/index.ts';
import type { AuthorityKeyRecord } from '../../../src/service/authority/key-list.ts';
import { applySchema } from '../../../src/store/cassandra/schema/apply-schema.ts';
import { type CassandraSettings, cassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import type { CassandraAddress } from '../../support/backends/backend.ts';
import { newKeyFile } from '../../support/production-settings.ts';
import { fixedPorts } from './fixed-ports.ts';
import { layOutNode, type NodeUnderTest, type Stopped } from './node-under-test.ts';

export const leaseTtlMs = 3_000;
/** The default of `schema apply`. */
export const shardCount = 256;
const quietMs = 1_000;
const pollMs = 100;

interface ClusterOptions {
  readonly nodes: number;
  /** A running Cassandra, in which the cluster gets a keyspace. null: starts one, which may be paused and killed. */
  readonly cassandra: CassandraAddress | null;
  readonly cassandraNodes?: 1 | 3;
  readonly bucketEvents?: number;
  /** Keeps logs and data at the end. */
  readonly keep?: boolean;
  /** Further variables of the nodes. */
  readonly env?: Readonly<Record<string, string>>;
  /** A checkout of an older version, with packages and generated code. It makes the keyspace, and is what nodes run. */
  readonly olderCheckout?: string | undefined;
}

/** Nodes, Redis, and if requested Cassandra, as processes. */
export interface ClusterUnderTest extends AsyncDisposable {
  /** The nodes that should run now. */
  readonly nodes: readonly NodeUnderTest[];
  readonly redis: { current: LocalRedis };
  readonly cassandra: LocalCassandra | null;
  readonly settings: CassandraSettings;
  /** The CASSANDRA_ variables of its nodes. */
  readonly cassandraEnv: Readonly<Record<string, string>>;
  /** All variables that its nodes have in common. */
  readonly commonEnv: Readonly<Record<string, string>>;
  readonly dir: string;
  /** The trust anchor document of its authority, which verifiers do not get from the nodes. */
  readonly anchorFile: string;
  /** Keeps logs and data at the end. */
  keep(): void;
  /** `schema apply` of this version. */
  applySchema(): Promise<string>;
  /** Adds a node and starts it. */
  grow(): Promise<NodeUnderTest>;
  /** Stops the newest node by SIGTERM and removes it. */
  shrink(): Promise<Stopped>;
  /** Restarts Redis, empty, at the same port. */
  restartRedis(): Promise<void>;
  /** Throws RangeError if there is no such node. */
  nodeAt(at: number): NodeUnderTest;
  shardOf(ledgerId: string): number;
  /** The node that holds the lease of a ledger's shard. null: none does. */
  ownerOf(ledgerId: string): Promise<NodeUnderTest | null>;
  /** The owner of each shard in Redis, by shard number, read through any node that answers. */
  owners(): Promise<ReadonlyMap<number, string>>;
  /** Waits until the nodes hold all shards, each about its share. Resolves with the milliseconds that took. */
  untilBalanced(maxMs: number): Promise<number>;
}

/** Starts the processes. If one does not start, the others are stopped. */
export async function startCluster(options: ClusterOptions): Promise<ClusterUnderTest> {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-cluster-'));
  const stack = new AsyncDisposableStack();
  let keeps = options.keep === true;
  stack.defer(() => {
    if (!keeps) rmSync(dir, { recursive: true, force: true });
  });
  const keep = () => {
    keeps = true;
  };
  try {
    return await start(options, dir, stack, keep);
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function start(
  options: ClusterOptions,
  dir: string,
  stack: AsyncDisposableStack,
  keep: () => void,
): Promise<ClusterUnderTest> {
  const [redisPort = 0] = await fixedPorts(1);
  const redis = { current: await startRedis({ dir: join(dir, 'redis'), port: redisPort }) };
  stack.defer(() => redis.current.process.kill());
  const own = options.cassandra === null ? await ownCassandra(options, dir) : null;
  if (own !== null) stack.defer(() => own[Symbol.asyncDispose]());
  const { contactPoints, localDataCenter, allow } = options.cassandra ?? { ...(own as LocalCassandra), allow: [] };
  const cassandraEnv = {
    CASSANDRA_CONTACT_POINTS: contactPoints.join(','),
    CASSANDRA_DATA_CENTER: localDataCenter,
    CASSANDRA_KEYSPACE: `cluster_${randomBytes(6).toString('hex')}`,
    CASSANDRA_ALLOW: allow.join(','),
  };
  const settings = cassandraSettings(cassandraEnv);
  const replicas = Math.min(3, own?.nodes.length ?? contactPoints.length);
  const { olderCheckout } = options;
  const applyThisSchema = () =>
    applySchema(settings, {
      replication: new Map([[localDataCenter, replicas]]),
      shardCount,
      random: (bytes) => randomBytes(bytes),
      ...(options.bucketEvents === undefined ? {} : { bucketEvents: options.bucketEvents }),
    });
  if (olderCheckout === undefined) await applyThisSchema();
  else {
    const command = ['schema', 'apply', '--replication', `${localDataCenter}:${replicas}`];
    const program = join(olderCheckout, 'cluster/cli.ts');
    await promisify(execFile)(process.execPath, [program, ...command], { env: { ...process.env, ...cassandraEnv } });
  }
  const keys = keyFiles(dir);
  const env = { ...cassandraEnv, ...keys, ...clusterTimings, ...options.env };
  const nodes: NodeUnderTest[] = [];
  const all: NodeUnderTest[] = [];
  stack.defer(async () => void (await Promise.all(all.map((node) => node[Symbol.asyncDispose]()))));
  let laidOut = 0;
  const layOut = async () => {
    laidOut += 1;
    const node = await layOutNode({ id: `node-${laidOut}`, dir, redisPort, env });
    all.push(node);
    return node;
  };
  for (let n = 0; n < options.nodes; n++) nodes.push(await layOut());
  await Promise.all(nodes.map((node) => node.start({ checkout: olderCheckout })));
  if (nodes.length > 0) await writeAnchor(settings, keys.AUTHORITY_KEY_FILE, join(dir, anchorName));

  const owners = async () => {
    for (const node of nodes) {
      const view = await node.view().catch(() => null);
      if (view !== null) return new Map(Object.entries(view.owners).map(([shard, id]) => [Number(shard), id]));
    }
    return new Map<number, string>();
  };
  return {
    nodes,
    redis,
    cassandra: own,
    settings,
    cassandraEnv,
    commonEnv: { REDIS_URL: `redis://127.0.0.1:${redisPort}`, ...env },
    dir,
    anchorFile: join(dir, anchorName),
    keep,
    applySchema: applyThisSchema,
    owners,
    nodeAt(at) {
      const node = nodes[at];
      if (node === undefined) throw new RangeError(`There is no node ${at}`);
      return node;
    },
    shardOf: (ledgerId) => shardOf(ledgerId, shardCount),
    async grow() {
      const node = await layOut();
      await node.start();
      nodes.push(node);
      return node;
    },
    async shrink() {
      const node = nodes.pop();
      if (node === undefined) throw new Error('no node is left');
      const stopped = await node.terminate();
      await node[Symbol.asyncDispose]();
      return stopped;
    },
    async restartRedis() {
      await redis.current.process.kill();
      redis.current = await startRedis({ dir: join(dir, 'redis'), port: redisPort });
    },
    async ownerOf(ledgerId) {
      const id = (await owners()).get(shardOf(ledgerId, shardCount));
      return nodes.find((node) => node.id === id) ?? null;
    },
    async untilBalanced(maxMs) {
      const began = performance.now();
      for (;;) {
        const shares = sharesOf(await owners(), nodes);
        if (isBalanced(shares)) return performance.now() - began;
        if (performance.now() - began > maxMs)
          throw new Error(`not balanced after ${maxMs} ms: ${shares.join(', ')} of ${shardCount} shards`);
        await afterMs(pollMs);
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const clusterTimings = {
  LEASE_TTL_MS: String(leaseTtlMs),
  REBALANCE_QUIET_MS: String(quietMs),
  CLUSTER_SECRET: randomBytes(24).toString('hex'),
};

async function ownCassandra(options: ClusterOptions, dir: string): Promise<LocalCassandra> {
  const [port = 0] = await fixedPorts(1);
  return startCassandra({ nodes: options.cassandraNodes ?? 1, dir: join(dir, 'cassandra'), port });
}

const anchorName = 'authority.json';

/** All nodes of a cluster have the same keys. */
function keyFiles(dir: string) {
  const [authority, secrets] = [join(dir, 'authority.pem'), join(dir, 'secrets.key')];
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(authority, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(secrets, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  return { AUTHORITY_KEY_FILE: authority, SECRETS_KEY_FILE: secrets, LOG_KEY_FILE: newKeyFile(dir, 'log.pem') };
}

/** Writes the trust anchor of the started nodes to `path`, which do not publish it in development mode. */
async function writeAnchor(settings: CassandraSettings, keyFile: string, path: string): Promise<void> {
  const publicKey = publicKeyBase64(createPrivateKey(readFileSync(keyFile)));
  const { contactPoints, localDataCenter, keyspace } = settings;
  const client = new cassandra.Client({ contactPoints: [...contactPoints], localDataCenter, keyspace });
  const found = await client.execute("SELECT value FROM record WHERE kind = 'authority' AND id = 'keys'");
  await client.shutdown();
  const { keys } = JSON.parse(String(found.first()?.value)) as { keys: AuthorityKeyRecord[] };
  writeFileSync(path, JSON.stringify(trustAnchor(publicKey, keys[0]?.validFrom)));
}

/** A trust anchor document with at most one key. In development mode nodes do not publish the authority's keys. */
export function trustAnchor(publicKey: string | null, validFrom = '2020-01-01T00:00:00.000Z'): object {
  const fingerprint =
    publicKey === null ? null : createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex');
  const key = { algorithm: 'Ed25519', public_key: publicKey, fingerprint };
  const dated = { kid: 'svc:authority#key-1', ...key, valid_from: validFrom, valid_to: null };
  const keys = publicKey === null ? [] : [dated];
  return { id: 'svc:authority', ...key, kid_namespace: 'svc:authority#key-<seq>', phase: '2', keys };
}

/** How many shards each node holds. */
function sharesOf(owners: ReadonlyMap<number, string>, nodes: readonly { readonly id: string }[]): number[] {
  return nodes.map(({ id }) => [...owners.values()].filter((owner) => owner === id).length);
}

/** Whether all shards are held, and each node has from half to one and a half of its share. */
function isBalanced(shares: readonly number[]): boolean {
  const held = shares.reduce((sum, share) => sum + share, 0);
  const fair = shardCount / shares.length;
  return held === shardCount && shares.every((share) => share >= fair / 2 && share <= fair * 1.5);
}
