import type cassandra from 'cassandra-driver';
import { StartError } from '../../../runtime/start-error.ts';
import { bucketEvents } from '../log/bucket.ts';
import { connect, isRefused, orNotAnswering } from '../session/connect.ts';
import { createClient, driverSession } from '../session/driver-session.ts';
import { ClusterFacts } from '../session/facts.ts';
import { type ReadSchemaNodes, schemaNodesOf, untilAgreed, waitOf } from '../session/schema-agreement.ts';
import { checkDataCenters, checkReplicas, checkServers, joinedMaxMs, replicasOf } from '../session/server-checks.ts';
import type { CassandraSettings } from '../session/settings.ts';
import {
  bucketEventsAdvice,
  bucketEventsFact,
  bucketEventsIn,
  damagedFact,
  keyspaceIdFact,
  shardCountAdvice,
  shardCountFact,
  shardCountIn,
} from './fact-values.ts';
import { newerSchema, schemaFact, schemaVersion, storedVersion, tableStatements } from './schema.ts';

/** Time limit for one attempt of a statement. Long, because the node may have just started. */
const statementMaxMs = 30_000;
const triesMax = 4;
const keyspaceIdBytes = 16;

interface SchemaOptions {
  readonly replication: ReadonlyMap<string, number>;
  /** Fixed for good once it is stored, because it maps ledgers to shards. */
  readonly shardCount: number;
  /** Fixed for good once it is stored. 1,024 if left out; smaller values are for tests. */
  readonly bucketEvents?: number;
  readonly random: (bytes: number) => Buffer;
  readonly joinedMaxMs?: number;
}

/**
 * Makes the keyspace and tables that are missing, waits until every node of Cassandra agrees, and stores the facts of
 * the cluster: schema version, shard count, events in a bucket, id of the keyspace. It may be run again. Of what exists
 * it only changes the schema version, and only upwards. Returns what it did, in a sentence. Throws StartError with what
 * the operator has to do first.
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
      const version = await withFacts(settings, (facts) => storedVersion(facts, keyspace));
      if (version !== null && version > schemaVersion) throw newerSchema(keyspace, version);
    }
    // Waits before the first change too: nodes that disagree and make the same table would have two tables of one name.
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

/** Returns the facts as text. Throws StartError if other values are stored already. */
function storeFacts(settings: CassandraSettings, options: SchemaOptions): Promise<string> {
  return withFacts(settings, async (facts) => {
    const fixed = [
      { name: shardCountFact, value: String(options.shardCount), parse: shardCountIn, advice: shardCountAdvice },
      {
        name: bucketEventsFact,
        value: String(options.bucketEvents ?? bucketEvents),
        parse: bucketEventsIn,
        advice: bucketEventsAdvice,
      },
    ];
    for (const { name, value, parse, advice } of fixed) {
      const stored = await facts.agree(name, value);
      if (parse(stored) === null) throw damagedFact(settings.keyspace, name, stored, advice);
      if (stored !== value)
        throw new StartError(
          `Keyspace ${settings.keyspace} has ${name} ${stored}, not ${value}: it is fixed when the schema is first applied.`,
        );
    }
    // Tells a restored copy of the keyspace from the original. Not shown: nobody has to know it.
    await facts.agree(keyspaceIdFact, options.random(keyspaceIdBytes).toString('hex'));
    // The version is stored last, so that a reader that finds it also finds the other facts.
    await moveVersion(settings.keyspace, facts);
    return [...fixed, schemaFact].map(({ name, value }) => `${name} ${value}`).join(', ');
  });
}

async function moveVersion(keyspace: string, facts: ClusterFacts): Promise<void> {
  const { name, value } = schemaFact;
  let stored = await facts.agree(name, value);
  while (Number(stored) < schemaVersion) stored = await facts.move(name, stored, value);
  if (stored !== value) throw newerSchema(keyspace, Number(stored));
}

function keyspaceStatement(keyspace: string, replication: ReadonlyMap<string, number>): string {
  const replicas = [...replication].map(([name, count]) => `'${name}': ${count}`);
  return `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', ${replicas.join(', ')}} AND durable_writes = true`;
}

/**
 * Executes a statement and waits until every node agrees on the schema. If there is no answer, it is sent again once
 * all nodes agree, which is harmless because of IF NOT EXISTS.
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
  const asText = (replication: ReadonlyMap<string, number>) =>
    [...replication].map(([name, count]) => `${name}:${count}`).join(', ');
  throw new StartError(
    `Keyspace ${keyspace} is replicated ${asText(found)}, not ${asText(wanted)}: change it by ALTER KEYSPACE and a repair, or name what it is.`,
  );
}
