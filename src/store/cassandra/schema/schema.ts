import { StartError } from '../../../runtime/start-error.ts';
import type { ClusterFacts } from '../session/facts.ts';
import { damagedFact, schemaVersionFact, schemaVersionIn } from './fact-values.ts';

/**
 * The tables, at version `schemaVersion`. Only ledger_event, record and signed_head are authoritative. The other
 * tables may lack rows that a crash kept from being written, or refer to data that does not exist (any more), but are
 * not wrong otherwise.
 *
 *   ledger_event   The log, under scope ''. For each scope and batch, one more row under the scope's name and the first
 *                  of its seqs in the batch lists the seqs of the batch in that scope. Static columns: `fence` says
 *                  which claim may append to the bucket, `head_seq` and `head_hash` where the log ends in it. Events up
 *                  to `projected_seq` have their projections. `pending` holds those of the newest batch, so that a
 *                  claim can complete them. Only written by conditional statements, never with a TTL, never deleted.
 *   ledger         A hint: a bucket near the end of the log, at which the search for the head starts.
 *   scope_bucket   The buckets in which a scope has events.
 *   command        Command keys by id, in windows of twelve hours with a TTL (slot 0 and up), or permanent (below 0).
 *   cell           Cells. The timestamp is the seq + 1, so that an older value never replaces a newer one.
 *   line           Lines of lists.
 *   snapshot       One row for each fold version. The timestamp is the seq + 1.
 *   record         Versioned records. A removed record leaves a version for an hour.
 *   record_lookup, record_expiry, record_expiry_minute
 *                  Index rows of records. Readers check them against the record.
 *   access_block   Access histories: blocks of events by actor and hour. Under ledger_id '' are all events, under each
 *                  ledger_id those of that ledger. Rows expire by their TTL.
 *   access_hour    The hours in which an actor has blocks.
 *   tile           Full tiles of level 0 of the trees (tile-store.ts), 64 in a partition.
 *   tile_hash      All other hashes of the trees, a row each, 16,384 in a partition.
 *   signed_head    The largest signed size of each log. The timestamp is the size. Never deleted: the deletion would
 *                  hide every later head.
 *   fact           Values that the nodes of a cluster agree on.
 */
export const schemaVersion = 2;

export const schemaFact = { name: schemaVersionFact, value: String(schemaVersion) } as const;

const hourSeconds = 60 * 60;
/**
 * gc_grace_seconds of tables with many deletions or expiring rows, so that tombstones go soon. The other tables have
 * few or no deletions, so that Cassandra's default of ten days does not matter.
 */
const threeHoursSeconds = 3 * hourSeconds;

/** More than 90 days, in whole weeks, because rows are dropped in whole files that hold a week each. */
export const accessTtlSeconds = 98 * 24 * hourSeconds;
const accessOptions = `default_time_to_live = ${accessTtlSeconds} AND gc_grace_seconds = ${threeHoursSeconds} AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 7}`;

const tables = [
  `ledger_event (
    ledger_id text, bucket int, scope text, seq bigint, row text,
    fence text static, head_seq bigint static, head_hash text static, projected_seq bigint static, pending text static,
    PRIMARY KEY ((ledger_id, bucket), scope, seq))`,
  'ledger (ledger_id text PRIMARY KEY, bucket int)',
  'scope_bucket (ledger_id text, scope text, bucket int, PRIMARY KEY ((ledger_id, scope), bucket))',
  `command (ledger_id text, slot int, id text, seq bigint, fingerprint text,
    PRIMARY KEY ((ledger_id, slot), id)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
  'cell (key text PRIMARY KEY, version bigint, value text)',
  'line (list text, line_order text, value text, PRIMARY KEY ((list), line_order))',
  `snapshot (owner text, fold_version int, seq bigint, hash text, state text, saved_at bigint,
    PRIMARY KEY ((owner), fold_version))`,
  'record (kind text, id text, version text, value text, places text, PRIMARY KEY ((kind, id)))',
  // Three hours are enough for index rows: a deleted row that reappears is found wrong when it is read.
  `record_lookup (kind text, name text, value text, line_order text, id text, put_token text,
    PRIMARY KEY ((kind, name, value), line_order, id, put_token)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
  `record_expiry (minute bigint, expires_at bigint, kind text, id text, put_token text,
    PRIMARY KEY ((minute), expires_at, kind, id, put_token)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
  `record_expiry_minute (
    part int, minute bigint, PRIMARY KEY ((part), minute)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
  `access_block (actor_id text, hour int, ledger_id text, first_id text, count int, events text,
    PRIMARY KEY ((actor_id, hour), ledger_id, first_id)) WITH ${accessOptions}`,
  `access_hour (actor_id text, hour int, PRIMARY KEY ((actor_id), hour)) WITH ${accessOptions}`,
  'tile (owner text, block bigint, n bigint, value blob, PRIMARY KEY ((owner, block), n))',
  `tile_hash (owner text, level int, block bigint, n bigint, value blob,
    PRIMARY KEY ((owner, level, block), n))`,
  'signed_head (origin text PRIMARY KEY, head blob)',
  // The last one, so that a missing table `fact` means that the schema was not applied completely.
  'fact (name text PRIMARY KEY, value text)',
];

export function tableStatements(keyspace: string): string[] {
  return tables.map((table) => `CREATE TABLE IF NOT EXISTS ${keyspace}.${table}`);
}

/** null if no schema was applied. */
export async function storedVersion(facts: ClusterFacts, keyspace: string): Promise<number | null> {
  const version = await facts.get(schemaFact.name).catch((error: unknown) => {
    if (error instanceof Error && /fact/.test(error.message) && /not exist|unconfigured/.test(error.message))
      return null;
    throw error;
  });
  if (version === null) return null;
  const known = schemaVersionIn(version);
  if (known === null) throw damagedFact(keyspace, schemaVersionFact, version, 'it is that of the nodes that ran last');
  return known;
}

export function newerSchema(keyspace: string, version: number): StartError {
  return new StartError(
    `Keyspace ${keyspace} has schema version ${version}, this version of the service knows ${schemaVersion}: a newer one was here; start that one, or restore the backup from before.`,
  );
}
