import type { KeyObject } from 'node:crypto';
import { decodeBase64 } from '../../domain/keys/base64.ts';
import { signDigest } from '../../domain/keys/key-object.ts';
import { fingerprint } from '../../domain/keys/public-key.ts';
import { endorsementDigest, isEndorsed } from '../../domain/log/endorsement.ts';
import { isServiceName } from '../../domain/log/origin.ts';
import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';
import { believedAuthority } from '../authority/authority.ts';
import type { AuthorityKeyRecord } from '../authority/key-list.ts';
import {
  decodeForm,
  type FormOf,
  listOf,
  objectOf,
  orNull,
  type RecordForm,
  text,
  textOrNull,
  time,
} from '../records/record-form.ts';

/** One key that signs checkpoints, or did. Times are ISO. */
export interface LogKeyRecord {
  /** base64, 32 bytes. */
  readonly publicKey: string;
  readonly validFrom: string;
  /** null while the key is in use. */
  readonly validTo: string | null;
  /** By the key that the authority had at `validFrom`, over `endorsementDigest`; base64. */
  readonly endorsement: { readonly kid: string; readonly sig: string };
}

/** An origin under which nothing is signed any more. */
interface EndedOrigin {
  readonly origin: string;
  readonly keys: readonly LogKeyRecord[];
  readonly endedAt: string;
}

/** What all nodes of a store agree on: under which name and key its logs are signed. */
export interface LogRecord {
  readonly origin: string;
  /** Oldest first; the last one is in use. */
  readonly keys: readonly LogKeyRecord[];
  /** Oldest first. */
  readonly previous: readonly EndedOrigin[];
  /**
   * The `storeId` of the store in which this was agreed on. A store with another one was restored from a copy. null: a
   * store of one node.
   */
  readonly keyspaceId: string | null;
}

interface StoredLog {
  /** null: no node has agreed on one yet. */
  readonly log: LogRecord | null;
  /** Of the record, as RecordStore names it. */
  readonly version: string;
}

/** Makes the authority's endorsement of a log key (base64) under an origin. */
export type Endorse = (origin: string, publicKey: string) => LogKeyRecord['endorsement'];

const PUBLIC_KEY_BYTES = 32;

const kind = 'log';
const id = 'identity';

const keyForm: FormOf<LogKeyRecord> = {
  publicKey: text,
  validFrom: time,
  validTo: orNull(time),
  endorsement: objectOf<LogKeyRecord['endorsement']>({ kid: text, sig: text }),
};
const keys = (value: unknown) => listOf(objectOf(keyForm))(value) && Array.isArray(value) && value.length > 0;

export const logRules: RecordForm<LogRecord> = {
  kind,
  form: {
    origin: text,
    keys,
    previous: listOf(objectOf<EndedOrigin>({ origin: text, keys, endedAt: time })),
    keyspaceId: textOrNull,
  },
};

/** Throws UnreadableRecord. */
export async function readLog(records: RecordStore): Promise<StoredLog> {
  const record = await records.get(kind, id);
  if (record === null) return { log: null, version: 'absent' };
  return { log: decodeStored(record, () => decodeForm(record, logRules)), version: record.version };
}

/** Returns false if another process has changed the record since `replaces` was read. */
export async function writeLog(records: RecordStore, log: LogRecord, replaces: string): Promise<boolean> {
  return (await records.put({ kind, id, replaces, value: JSON.stringify(log), lookups: [] })).ok;
}

interface LogAuthority {
  /** By the authority's key in use. Throws ConfigError for a key that the authority has or had itself. */
  readonly endorse: Endorse;
  /** Throws ConfigError if the record has a key that no key of the authority has endorsed. */
  readonly check: (log: LogRecord) => void;
}

/** Throws ConfigError unless `authorityKey` is the authority's key in use, and has signed the list of its keys. */
export async function logAuthority(records: RecordStore, authorityKey: KeyObject): Promise<LogAuthority> {
  const { keys } = await believedAuthority(records, authorityKey);
  const kid = keys.at(-1)?.kid ?? '';
  return {
    endorse: (origin, publicKey) => {
      if (keys.some((key) => key.publicKey === publicKey))
        throw new ConfigError('A key of the authority never signs checkpoints: make another one for them.');
      const digest = endorsementDigest({ serviceName: origin, publicKey: Buffer.from(publicKey, 'base64') });
      return { kid, sig: signDigest(digest, authorityKey) };
    },
    check: (log) => {
      const why = whyNotEndorsed(log, keys);
      if (why !== null)
        throw new ConfigError(
          `The stored record of the log (kind log, id identity) is not believed, because ${why}. Restore the record from a backup, and find out who can write to the store.`,
        );
    },
  };
}

/** Throws ConfigError as logAuthority does, and if the stored record has a key that the authority has not endorsed. */
export async function checkLog(records: RecordStore, authorityKey: KeyObject): Promise<void> {
  const { check } = await logAuthority(records, authorityKey);
  const { log } = await readLog(records);
  if (log !== null) check(log);
}

/** Says which key of the record no key of the authority has endorsed under its origin, as a clause. null: none. */
export function whyNotEndorsed(log: LogRecord, authorityKeys: readonly AuthorityKeyRecord[]): string | null {
  for (const { origin, keys } of [log, ...log.previous])
    for (const key of keys)
      if (!isEndorsedBy(authorityKeys, origin, key))
        return `the authority has not endorsed the key with the fingerprint ${logKeyFingerprint(key)} for ${origin}`;
  return null;
}

function isEndorsedBy(
  authorityKeys: readonly AuthorityKeyRecord[],
  origin: string,
  { publicKey, endorsement }: LogKeyRecord,
): boolean {
  const endorser = authorityKeys.find(({ kid }) => kid === endorsement.kid);
  const bytes = decodeBase64(publicKey, PUBLIC_KEY_BYTES);
  if (endorser === undefined || bytes === null || !isServiceName(origin)) return false;
  return isEndorsed({ serviceName: origin, publicKey: bytes }, endorsement.sig, endorser.publicKey);
}

export function newLogKey(origin: string, publicKey: string, endorse: Endorse, nowIso: string): LogKeyRecord {
  return { publicKey, validFrom: nowIso, validTo: null, endorsement: endorse(origin, publicKey) };
}

/** SHA-256 of the public key, hex. */
export function logKeyFingerprint({ publicKey }: Pick<LogKeyRecord, 'publicKey'>): string {
  return fingerprint(Buffer.from(publicKey, 'base64'));
}

export function keyInUse({ keys }: Pick<LogRecord, 'keys'>): LogKeyRecord {
  const key = keys.at(-1);
  if (key === undefined) throw new TypeError('the record of the log has no key');
  return key;
}

/** Whether this public key (base64) signs the store's checkpoints, or ever did. */
export async function isLogKey(records: RecordStore, publicKey: string): Promise<boolean> {
  const { log } = await readLog(records);
  return log !== null && hasHadKey(log, publicKey);
}

function hasHadKey({ keys, previous }: LogRecord, publicKey: string): boolean {
  return [...keys, ...previous.flatMap((ended) => ended.keys)].some((key) => key.publicKey === publicKey);
}

function ended(keys: readonly LogKeyRecord[], nowIso: string): LogKeyRecord[] {
  return keys.map((key) => (key.validTo === null ? { ...key, validTo: nowIso } : key));
}

/**
 * The record after a rotation to `publicKey` (base64): older keys stay listed, since a checkpoint has no time and its
 * key stays good for it. Run again with the key that is in use already, it changes nothing. Throws ConfigError.
 */
export function withNextKey(log: LogRecord, publicKey: string, endorse: Endorse, nowIso: string): LogRecord {
  if (keyInUse(log).publicKey === publicKey) return log;
  if (hasHadKey(log, publicKey)) throw usedKey();
  return { ...log, keys: [...ended(log.keys, nowIso), newLogKey(log.origin, publicKey, endorse, nowIso)] };
}

function usedKey(): ConfigError {
  return new ConfigError('This key has signed the logs of the store before: make a new one.');
}

/** `publicKey` (base64) null: the key in use goes on under the new origin. Throws ConfigError. */
export function withNewOrigin(
  log: LogRecord,
  { origin, publicKey }: { readonly origin: string; readonly publicKey: string | null },
  endorse: Endorse,
  nowIso: string,
): LogRecord {
  if ([log, ...log.previous].some((known) => known.origin === origin))
    throw new ConfigError(
      `${origin} is a name that this store has had: take one that was never used, such as the old name and a date.`,
    );
  const inUse = keyInUse(log).publicKey;
  const next = publicKey ?? inUse;
  if (next !== inUse && hasHadKey(log, next)) throw usedKey();
  return {
    ...log,
    origin,
    keys: [newLogKey(origin, next, endorse, nowIso)],
    previous: [...log.previous, { origin: log.origin, keys: ended(log.keys, nowIso), endedAt: nowIso }],
  };
}
