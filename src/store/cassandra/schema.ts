/**
 * The tables, at version `schemaVersion`. What is certain is in ledger_event and record alone; all else can be wrong
 * only by lacking what a crash kept from being written, or by naming what is not there (any more).
 *
 *   ledger_event   the log, under scope ''; beside it in each bucket, under the name of a scope and the first of its seqs in a
 *                  batch, which events of the batch belong to that scope. Static columns say who may append to the bucket (fence) and where the log ends in it
 *                  (head_seq, head_hash); everything through projected_seq is projected, and what belongs to the newest
 *                  batch stands in `pending`, for whoever finds it unfinished. Written by conditional statements alone,
 *                  never with a TTL, never deleted from
 *   ledger         a bucket near the end of the log, to start looking for the head at
 *   scope_bucket   the buckets that a scope has events in
 *   command        marks by id, in windows of twelve hours (slot 0 and up) with a TTL, or for ever (below 0)
 *   cell           written with the seq of its event as the timestamp, so that an older value never replaces a newer one
 *   line           lists
 *   snapshot       one a fold version; the timestamp is the seq
 *   record         versioned records; a removed one leaves a version of its own behind for an hour
 *   record_lookup, record_expiry, record_expiry_minute   where records are found; checked against the record when read
 *   access_block   access histories: events in blocks, by actor and hour; under ledger '' all of them, under each ledger its
 *                  own. They leave by their TTL
 *   access_hour    the hours in which an actor has blocks
 *   fact           what the nodes of a cluster agree on
 */
export const schemaVersion = 1;

/** The version as a fact, and the name of that fact. */
export const schemaFact = { name: 'schema-version', value: String(schemaVersion) } as const;

/** Where nothing is ever deleted or expires the ten days that deleted things stay do not matter; where much does, they do. */
const hourSeconds = 60 * 60;
const threeHoursSeconds = 3 * hourSeconds;

/** Kept for 90 days, and dropped by the week, whole files at a time. */
const accessTtlSeconds = 98 * 24 * hourSeconds;
const accessOptions = `default_time_to_live = ${accessTtlSeconds} AND gc_grace_seconds = ${threeHoursSeconds} AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 7}`;

/** Statements that make the tables in a keyspace; each does nothing where its table exists. */
export function tableStatements(keyspace: string): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${keyspace}.ledger_event (
      ledger_id text, bucket int, scope text, seq bigint, row text,
      fence text static, head_seq bigint static, head_hash text static, projected_seq bigint static, pending text static,
      PRIMARY KEY ((ledger_id, bucket), scope, seq))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.ledger (ledger_id text PRIMARY KEY, bucket int)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.scope_bucket (
      ledger_id text, scope text, bucket int, PRIMARY KEY ((ledger_id, scope), bucket))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.command (
      ledger_id text, slot int, id text, seq bigint, fingerprint text,
      PRIMARY KEY ((ledger_id, slot), id)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.cell (key text PRIMARY KEY, version bigint, value text)`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.line (
      list text, line_order text, value text, PRIMARY KEY ((list), line_order))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.snapshot (
      owner text, fold_version int, seq bigint, hash text, state text, saved_at bigint,
      PRIMARY KEY ((owner), fold_version))`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record (
      kind text, id text, version text, value text, places text, PRIMARY KEY ((kind, id)))`,
    // A row of these that comes back to life after its deletion is found wrong when it is read: hours are enough.
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record_lookup (
      kind text, name text, value text, line_order text, id text, put_token text,
      PRIMARY KEY ((kind, name, value), line_order, id, put_token)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record_expiry (
      minute bigint, expires_at bigint, kind text, id text, put_token text,
      PRIMARY KEY ((minute), expires_at, kind, id, put_token)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.record_expiry_minute (
      part int, minute bigint, PRIMARY KEY ((part), minute)) WITH gc_grace_seconds = ${threeHoursSeconds}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.access_block (
      actor_id text, hour int, ledger_id text, first_id text, count int, events text,
      PRIMARY KEY ((actor_id, hour), ledger_id, first_id)) WITH ${accessOptions}`,
    `CREATE TABLE IF NOT EXISTS ${keyspace}.access_hour (
      actor_id text, hour int, PRIMARY KEY ((actor_id), hour)) WITH ${accessOptions}`,
    // Last: where it is missing, the schema was not applied to its end.
    `CREATE TABLE IF NOT EXISTS ${keyspace}.fact (name text PRIMARY KEY, value text)`,
  ];
}
