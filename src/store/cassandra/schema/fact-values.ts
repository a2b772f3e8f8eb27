import { StartError } from '../../../runtime/start-error.ts';
import { accessKeptMs } from '../../access-log.ts';
import { accessHour } from '../keys.ts';

/** What the values of facts mean. A value that no node can have stored means nothing (null), as if there were none. */

/** Nodes look at every shard, so there must not be any number of them. */
export const shardsMax = 65_536;
/** Hours by which the clocks of nodes may differ. */
const clockSkewHours = 24;

export const schemaVersionFact = 'schema-version';
export const shardCountFact = 'shard-count';
export const bucketEventsFact = 'bucket-events';
/** The hour from which on access events are shown. Raised by sweeps. */
export const keptFromHourFact = 'access-kept-from-hour';
/**
 * A random id of the keyspace. `schema apply` makes it once. A keyspace into which a snapshot is restored has another
 * one than the keyspace that the snapshot was taken of.
 */
export const keyspaceIdFact = 'keyspace-id';

export function schemaVersionIn(value: string | null): number | null {
  return /^\d{1,6}$/.test(value ?? '') ? Number(value) : null;
}

export function shardCountIn(value: string | null): number | null {
  const count = /^[1-9]\d{0,4}$/.test(value ?? '') ? Number(value) : null;
  return count === null || count > shardsMax ? null : count;
}

export function bucketEventsIn(value: string | null): number | null {
  return /^[1-9]\d{0,5}$/.test(value ?? '') ? Number(value) : null;
}

/** Sweeps hide what is older than the retention time, and nothing younger. */
export function keptFromHourIn(value: string | null, nowMs: number): number | null {
  const hour = /^(0|[1-9]\d{0,9})$/.test(value ?? '') ? Number(value) : null;
  return hour === null || hour > accessHour(nowMs - accessKeptMs) + clockSkewHours ? null : hour;
}

/** What is wrong with a fact, as text. null if it is sound. */
export function wrongFact(name: string, value: string, nowMs: number): string | null {
  if (value === '') return `the fact ${name} has no value`;
  switch (name) {
    case keyspaceIdFact:
      return /^[0-9a-f]{32}$/.test(value) ? null : `the fact ${name} is no id`;
    case schemaVersionFact:
      return schemaVersionIn(value) === null ? `the fact ${name} is no number` : null;
    case bucketEventsFact:
      return bucketEventsIn(value) === null ? `the fact ${name} is no number of events` : null;
    case shardCountFact:
      return shardCountIn(value) === null ? `the fact ${name} is no number from 1 to ${shardsMax}` : null;
    case keptFromHourFact:
      return keptFromHourIn(value, nowMs) === null
        ? `the fact ${name} is no hour before which all access events have run out`
        : null;
    default:
      return null;
  }
}

export const shardCountAdvice = 'it is 256 unless `schema apply` was first run with another number of --shards';
export const bucketEventsAdvice = 'it is 1024 unless the schema was made for tests';

export function damagedFact(keyspace: string, name: string, value: string, advice: string): StartError {
  return new StartError(
    `The row ${name} of table fact in keyspace ${keyspace} is damaged (it says "${value.slice(0, 20)}"): restore it from a backup; ${advice}.`,
  );
}
