import type cassandra from 'cassandra-driver';
import { StartError } from '../start-error.ts';
import { bucketEvents } from './bucket.ts';
import { connect } from './connect.ts';
import { createClient, driverSession } from './driver-session.ts';
import { ClusterFacts } from './facts.ts';
import { schemaFact, tableStatements } from './schema.ts';
import { checkDataCenters, checkServers, replicasOf } from './server-checks.ts';
import type { CassandraSettings } from './settings.ts';

/** How often the nodes are asked whether they agree, with what between: a minute. */
const pollsMax = 300;
const pollMs = 200;
/** Making a table waits for every node. */
const statementMaxMs = 30_000;

export interface SchemaOptions {
  /** Replicas by data centre. */
  readonly replication: ReadonlyMap<string, number>;
  /** Fixed for good once it is stored (cluster.md). */
  readonly shardCount: number;
  /** Fixed for good once it is stored; smaller than 1,024 is for tests. */
  readonly bucketEvents?: number;
}

/**
 * Makes what is missing of keyspace and tables, waits until every node agrees, and stores what the cluster is: schema
 * version, shard count, events in a bucket. May be run again; changes nothing that is there. Answers what it did, in a
 * sentence. StartError with a sentence for what the operator has to mend first.
 */
export async function applySchema(settings: CassandraSettings, options: SchemaOptions): Promise<string> {
  const { keyspace } = settings;
  const client = createClient(settings, null);
  try {
    await connect(client, settings);
    await checkServers(client, settings);
    const found = await replicasOf(client, keyspace);
    checkDataCenters([...(found ?? options.replication).keys()], settings);
    if (found === null) await createKeyspace(client, keyspace, options.replication);
    else checkReplication(keyspace, found, options.replication);
    await untilAgreed(client);
    for (const statement of tableStatements(keyspace)) {
      await client.execute(statement, [], { prepare: false, readTimeout: statementMaxMs });
      await untilAgreed(client);
    }
  } finally {
    await client.shutdown();
  }
  return `Keyspace ${keyspace} is ready: ${await storeFacts(settings, options)}.`;
}

/** What the facts are once they are stored; StartError where others stand there. */
async function storeFacts(settings: CassandraSettings, options: SchemaOptions): Promise<string> {
  await using opened = driverSession(settings);
  await connect(opened.client, settings);
  const facts = new ClusterFacts(opened.session);
  const wanted = [
    { name: 'shard-count', value: String(options.shardCount) },
    { name: 'bucket-events', value: String(options.bucketEvents ?? bucketEvents) },
    // Last: who finds the version finds the rest.
    schemaFact,
  ];
  for (const { name, value } of wanted) {
    const standing = await facts.agree(name, value);
    if (standing !== value)
      throw new StartError(
        `Keyspace ${settings.keyspace} has ${name} ${standing}, not ${value}: it is fixed when the schema is first applied.`,
      );
  }
  return wanted.map(({ name, value }) => `${name} ${value}`).join(', ');
}

async function createKeyspace(
  client: cassandra.Client,
  keyspace: string,
  replication: ReadonlyMap<string, number>,
): Promise<void> {
  const known = new Set(client.hosts.values().map(({ datacenter }) => datacenter));
  const replicas = [...replication].map(([name, count]) => {
    if (!known.has(name))
      throw new StartError(`Cassandra has no data centre ${name}; it has ${[...known].join(', ')}.`);
    return `'${name}': ${count}`;
  });
  await client.execute(
    `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', ${replicas.join(', ')}} AND durable_writes = true`,
    [],
    { prepare: false, readTimeout: statementMaxMs },
  );
}

function checkReplication(
  keyspace: string,
  found: ReadonlyMap<string, number>,
  wanted: ReadonlyMap<string, number>,
): void {
  const isSame = found.size === wanted.size && [...wanted].every(([name, count]) => found.get(name) === count);
  if (isSame) return;
  const told = (replication: ReadonlyMap<string, number>) =>
    [...replication].map(([name, count]) => `${name}:${count}`).join(', ');
  throw new StartError(
    `Keyspace ${keyspace} is replicated ${told(found)}, not ${told(wanted)}: change it by ALTER KEYSPACE and a repair, or name what it is.`,
  );
}

/** Until every node has the same schema. One that is down keeps the version it had, and so holds this up: it would not know the tables. */
async function untilAgreed(client: cassandra.Client): Promise<void> {
  for (let polls = 1; (await schemaVersions(client)).size > 1; polls++) {
    if (polls === pollsMax)
      throw new StartError(
        'The nodes of Cassandra do not agree on a schema: see `nodetool describecluster`, then apply again.',
      );
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** As the control connection's node knows them, so that all of them are asked of one node. */
async function schemaVersions(client: cassandra.Client): Promise<Set<string>> {
  const [host] = client.getState().getConnectedHosts();
  const options = host === undefined ? {} : { host };
  const local = await client.execute('SELECT schema_version FROM system.local', [], options);
  const peers = await client.execute('SELECT schema_version FROM system.peers', [], options);
  return new Set([...local.rows, ...peers.rows].map((row) => String(row.schema_version)));
}
