import type { KeyObject } from 'node:crypto';
import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { StoreStamp } from '../../store/store-stamp.ts';
import { publicKeyOf } from '../authority/authority.ts';
import { isStamped } from './log-identity.ts';
import {
  keyInUse,
  type LogKeyRecord,
  type LogRecord,
  logAuthority,
  logKeyFingerprint,
  readLog,
  withNewOrigin,
  withNextKey,
  writeLog,
} from './log-record.ts';

/**
 * The changes of a store's log by its operator. Each needs a store that no node serves, and returns what is so
 * afterwards. Each throws ConfigError with a sentence if it cannot be done.
 */

interface LogChangeParts {
  readonly records: RecordStore;
  readonly stamp: StoreStamp;
}

interface SignedChangeParts extends LogChangeParts {
  /** The authority's key in use: it endorses what is new. */
  readonly authorityKey: KeyObject;
  readonly nowIso: string;
}

/** Makes `next` the key that signs. Run again with the same key, it changes nothing. */
export async function rotateLogKey(parts: SignedChangeParts, next: KeyObject): Promise<LogRecord> {
  const { records, authorityKey, nowIso } = parts;
  const { endorse, check } = await logAuthority(records, authorityKey);
  return changeLog(records, (log) => {
    check(log);
    return withNextKey(log, publicKeyOf(next), endorse, nowIso);
  });
}

/**
 * Gives the store a new origin, and clears its mark as a copy last: until then nothing is signed. `next` null: the key
 * in use goes on.
 */
export async function takeNewOrigin(
  parts: SignedChangeParts,
  origin: string,
  next: KeyObject | null,
): Promise<LogRecord> {
  const { records, stamp, authorityKey, nowIso } = parts;
  const { endorse, check } = await logAuthority(records, authorityKey);
  const to = { origin, publicKey: next === null ? null : publicKeyOf(next) };
  const log = await changeLog(records, (log) => {
    check(log);
    return { ...withNewOrigin(log, to, endorse, nowIso), keyspaceId: stamp.storeId };
  });
  stamp.clear();
  return log;
}

/** Goes on under the same origin: the operator states that nothing was signed since the copy was made. */
export async function keepLog({ records, stamp }: LogChangeParts): Promise<{ readonly wasCopy: boolean }> {
  const { log } = await readLog(records);
  const wasCopy = log === null ? stamp.isCopy() : isStamped(log, stamp);
  if (log !== null && log.keyspaceId !== stamp.storeId)
    await changeLog(records, (known) => ({ ...known, keyspaceId: stamp.storeId }));
  stamp.clear();
  return { wasCopy };
}

async function changeLog(records: RecordStore, change: (log: LogRecord) => LogRecord): Promise<LogRecord> {
  const { log, version } = await readLog(records);
  if (log === null) throw new ConfigError('The store signs no logs yet: start a node on it once.');
  const changed = change(log);
  if (changed !== log && !(await writeLog(records, changed, version)))
    throw new ConfigError('The log of the store was changed meanwhile: stop all nodes, and try again.');
  return changed;
}

/** `<fingerprint> signs the logs of <origin> from <time> on`, for operators. */
export function describeLog(log: LogRecord): string {
  const key: LogKeyRecord = keyInUse(log);
  return `The key with the fingerprint ${logKeyFingerprint(key)} signs the logs of ${log.origin} from ${key.validFrom} on.`;
}
