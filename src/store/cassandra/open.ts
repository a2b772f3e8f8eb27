import { StartError } from '../../runtime/start-error.ts';
import type { SharedStores } from '../shared-stores.ts';
import { CassandraAccessLog } from './access/access-log.ts';
import { CassandraLedgerStore } from './log/ledger-store.ts';
import { CassandraRecordStore } from './records/record-store.ts';
import {
  bucketEventsAdvice,
  bucketEventsFact,
  bucketEventsIn,
  damagedFact,
  keyspaceIdFact,
  shardCountAdvice,
  shardCountFact,
  shardCountIn,
} from './schema/fact-values.ts';
import { newerSchema, schemaFact, schemaVersion, storedVersion } from './schema/schema.ts';
import { connect } from './session/connect.ts';
import { driverSession } from './session/driver-session.ts';
import { ClusterFacts } from './session/facts.ts';
import { prepareAtStart } from './session/prepared-at-start.ts';
import { checkDataCenters, checkServers, replicasOf } from './session/server-checks.ts';
import type { CqlSession } from './session/session.ts';
import type { CassandraSettings } from './session/settings.ts';
import { CassandraSignedHeads } from './trees/signed-heads.ts';
import { CassandraTileStore } from './trees/tile-store.ts';

const TIME = 'SELECT toTimestamp(now()) AS now FROM system.local';

interface CassandraOptions {
  readonly settings: CassandraSettings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: (bytes: number) => Buffer;
  /** Whether a node will serve calls. Then the statements of the first calls are prepared on opening. */
  readonly isServing?: boolean;
  /** Wraps the session that the stores use. Tests inject faults by it. */
  readonly around?: (session: CqlSession) => CqlSession;
}

/** The stores of a clustered node, all in one keyspace. */
export interface CassandraStores extends SharedStores {
  readonly facts: ClusterFacts;
  /** The session of the stores, for other readers of the keyspace. */
  readonly session: CqlSession;
  readonly bucketEvents: number;
}

/**
 * Opens a keyspace that `schema apply` has made. Does not change its schema. Throws StartError if Cassandra cannot be
 * reached, the schema is missing or has another version, or the settings are not safe.
 */
export async function openCassandra(options: CassandraOptions): Promise<CassandraStores> {
  const { settings, now, random, isServing = false, around } = options;
  const opened = driverSession(settings);
  const { client } = opened;
  await connect(client, settings);
  try {
    const replicas = await replicasOf(client, settings.keyspace);
    checkDataCenters([...(replicas?.keys() ?? [])], settings);
    await checkServers(client, settings);
    const facts = new ClusterFacts(opened.session);
    const bucketEvents = await checkSchema(facts, settings);
    const stamp = { storeId: await facts.get(keyspaceIdFact), isCopy: () => false, clear: () => {} };
    if (isServing) await prepareAtStart(client);
    const session = around?.(opened.session) ?? opened.session;
    const ledgers = new CassandraLedgerStore({ session, now, random, bucketEvents, writesMax: settings.writesMax });
    return {
      ledgers,
      records: new CassandraRecordStore(session, random, settings.writesMax),
      access: new CassandraAccessLog(session, now),
      tiles: new CassandraTileStore(session),
      signedHeads: new CassandraSignedHeads(session),
      facts,
      stamp,
      session,
      bucketEvents,
      shardCount: () => storedShardCount(facts, settings),
      time: () => timeOf(session),
      projectionLag: () => ledgers.projectionLag(),
      check: async () => void (await facts.get(schemaFact.name)),
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

async function storedShardCount(facts: ClusterFacts, { keyspace }: CassandraSettings): Promise<number> {
  const stored = await facts.get(shardCountFact);
  if (stored === null)
    throw new StartError('The keyspace does not say how many shards it has: run `ledger-trust schema apply`.');
  const count = shardCountIn(stored);
  if (count === null) throw damagedFact(keyspace, shardCountFact, stored, shardCountAdvice);
  return count;
}

async function timeOf(session: CqlSession): Promise<number> {
  const [row] = await session.read({ cql: TIME, params: [] });
  if (!(row?.now instanceof Date)) throw new TypeError('Cassandra does not say what time it is');
  return row.now.getTime();
}

/** Returns the stored number of events in a bucket. */
async function checkSchema(facts: ClusterFacts, { keyspace }: CassandraSettings): Promise<number> {
  const version = await storedVersion(facts, keyspace);
  if (version === null)
    throw new StartError(`Keyspace ${keyspace} has no schema of this service: run \`ledger-trust schema apply\`.`);
  if (version > schemaVersion) throw newerSchema(keyspace, version);
  if (version < schemaVersion)
    throw new StartError(
      `Keyspace ${keyspace} has schema version ${version}, this version of the service needs ${schemaVersion}: run its \`ledger-trust schema apply\`, with the same --shards and --replication; nodes of the version before that run go on.`,
    );
  const stored = await facts.get(bucketEventsFact);
  const bucketEvents = bucketEventsIn(stored);
  if (bucketEvents === null) throw damagedFact(keyspace, bucketEventsFact, stored ?? '', bucketEventsAdvice);
  return bucketEvents;
}
