import type cassandra from 'cassandra-driver';
import { StartError } from '../start-error.ts';
import { bucketEvents } from './bucket.ts';
import { connect, isRefused, orNotAnswering } from './connect.ts';
import { createClient, driverSession } from './driver-session.ts';
import { ClusterFacts } from './facts.ts';
import { schemaFact, schemaVersion, tableStatements } from './schema.ts';
import { type ReadSchemaNodes, schemaNodesOf, untilAgreed, waitOf } from './schema-agreement.ts';
import { newerSchema, storedVersion } from './schema-version.ts';
import { checkDataCenters, checkReplicas, checkServers, joinedMaxMs, replicasOf } from './server-checks.ts';
import type { CassandraSettings } from './settings.ts';

/** One try of a statement, at a node that may have just started. */
const statementMaxMs = 30_000;
const triesMax = 4;

export interface SchemaOptions {
  /** Replicas by data centre. */
  readonly replication: ReadonlyMap<string, number>;
  /** Fixed for good once it is stored (cluster.md). */
  readonly shardCount: number;
  /** Fixed for good once it is stored; smaller than 1,024 is for tests. */
  readonly bucketEvents?: number;
  /** How long nodes of Cassandra that are about to join are waited for, in milliseconds. */
  readonly joinedMaxMs?: number;
}

/**
 * Makes what is missing of keyspace and tables, waits until every node agrees, and stores what the cluster is: schema
 * version, shard count, events in a bucket. May be run again; of what is there it changes the version alone, forward. Answers what
 * it did, in a sentence. StartError with a sentence for what the operator has to mend first.
 */
export async function applySchema(settings: CassandraSettings, options: SchemaOptions): Promise<string> {
  const { keyspace } = settings;
  const client = createClient(settings, null);
  try {
    await connect(client, settings);
    await checkServers(client, settings);
    const found = await replicasOf(client, keyspace);
    checkDataCenters([...(found ?? options.replication).keys()], settings);
    const nodes = schemaNodesOf(client);
    if (found === null) await checkReplicas(nodes, options.replication, waitOf(options.joinedMaxMs ?? joinedMaxMs));
    else {
      checkReplication(keyspace, found, options.replication);
      await withFacts(settings, (facts) => checkVersion(keyspace, facts));
    }
    // Also before the first change: two nodes that make the same table before they agree would have two of one name.
    await untilAgreed(nodes);
    const makeKeyspace = found === null ? [keyspaceStatement(keyspace, options.replication)] : [];
    for (const statement of [...makeKeyspace, ...tableStatements(keyspace)]) await change(client, nodes, statement);
  } finally {
    await client.shutdown();
  }
  return `Keyspace ${keyspace} is ready: ${await storeFacts(settings, options)}.`;
}

async function withFacts<T>(settings: CassandraSettings, work: (facts: ClusterFacts) => Promise<T>): Promise<T> {
  await using opened = driverSession(settings);
  await connect(opened.client, settings);
  try {
    return await work(new ClusterFacts(opened.session));
  } catch (error) {
    throw orNotAnswering(error);
  }
}

/** Before anything is changed: what a newer version has made is not for this one to add to. */
async function checkVersion(keyspace: string, facts: ClusterFacts): Promise<void> {
  const version = await storedVersion(facts);
  if (version !== null && version > schemaVersion) throw newerSchema(keyspace, version);
}

/** What the facts are once they are stored; StartError where others stand there. */
function storeFacts(settings: CassandraSettings, options: SchemaOptions): Promise<string> {
  return withFacts(settings, async (facts) => {
    const fixed = [
      { name: 'shard-count', value: String(options.shardCount) },
      { name: 'bucket-events', value: String(options.bucketEvents ?? bucketEvents) },
    ];
    for (const { name, value } of fixed) {
      const standing = await facts.agree(name, value);
      if (standing !== value)
        throw new StartError(
          `Keyspace ${settings.keyspace} has ${name} ${standing}, not ${value}: it is fixed when the schema is first applied.`,
        );
    }
    // Last: who finds the version finds the rest.
    await moveVersion(settings.keyspace, facts);
    return [...fixed, schemaFact].map(({ name, value }) => `${name} ${value}`).join(', ');
  });
}

/** Stores the version, in the place of an older one. */
async function moveVersion(keyspace: string, facts: ClusterFacts): Promise<void> {
  const { name, value } = schemaFact;
  let standing = await facts.agree(name, value);
  while (Number(standing) < schemaVersion) standing = await facts.move(name, standing, value);
  if (standing !== value) throw newerSchema(keyspace, Number(standing));
}

function keyspaceStatement(keyspace: string, replication: ReadonlyMap<string, number>): string {
  const replicas = [...replication].map(([name, count]) => `'${name}': ${count}`);
  return `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', ${replicas.join(', ')}} AND durable_writes = true`;
}

/**
 * Carries a statement out, and waits until every node knows what it made. Where no answer comes it may have been carried out all the
 * same: it is sent again once all nodes agree, and does nothing then (IF NOT EXISTS). StartError where that does not help.
 */
async function change(client: cassandra.Client, nodes: ReadSchemaNodes, statement: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.execute(statement, [], { prepare: false, readTimeout: statementMaxMs });
      return await untilAgreed(nodes);
    } catch (error) {
      if (error instanceof StartError || isRefused(error)) throw error;
      if (tries === triesMax)
        throw new StartError(
          `Cassandra did not carry out a change of its schema in ${triesMax} tries (${error instanceof Error ? error.message : String(error)}): see whether its nodes have the processor and memory they need, then apply again; what was made is kept.`,
          error,
        );
      await untilAgreed(nodes);
    }
  }
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
