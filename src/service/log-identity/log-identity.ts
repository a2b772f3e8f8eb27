import { type KeyObject, sign } from 'node:crypto';
import { LedgerError } from '../../domain/errors.ts';
import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { StoreStamp } from '../../store/store-stamp.ts';
import { publicKeyOf } from '../authority/authority.ts';
import { BehindLogs } from './behind-logs.ts';
import {
  type Endorse,
  keyInUse,
  type LogKeyRecord,
  type LogRecord,
  logAuthority,
  logKeyFingerprint,
  newLogKey,
  readLog,
  withNewOrigin,
  writeLog,
} from './log-record.ts';

interface LogIdentityParts {
  readonly records: RecordStore;
  readonly stamp: StoreStamp;
  readonly logKey: KeyObject;
  readonly authorityKey: KeyObject;
  /** LOG_ORIGIN. null: whichever the store has; a restored copy takes a new one by itself. */
  readonly origin: string | null;
  readonly nowIso: string;
  readonly random: (bytes: number) => Buffer;
}

/**
 * Reads the name and the keys that the store's logs are signed with. In a store without them, those of this node become
 * the store's; its authority must be enrolled. Throws ConfigError if the node has others, or if the authority has not
 * endorsed all of the store's.
 */
export async function openLogIdentity(parts: LogIdentityParts): Promise<LogIdentity> {
  const { records, stamp, logKey, authorityKey, origin, nowIso, random } = parts;
  const publicKey = publicKeyOf(logKey);
  const { endorse, check } = await logAuthority(records, authorityKey);
  for (;;) {
    const { log, version } = await readLog(records);
    if (log === null) {
      const first = firstLog(origin ?? randomOrigin(random), publicKey, stamp, endorse, nowIso);
      if (!(await writeLog(records, first, version))) continue;
      return new LogIdentity(first, logKey, isStamped(first, stamp));
    }
    check(log);
    if (origin !== null && log.origin !== origin) throw otherOrigin(origin, log.origin);
    if (keyInUse(log).publicKey !== publicKey) throw otherKey(log);
    if (origin !== null || !isStamped(log, stamp)) return new LogIdentity(log, logKey, isStamped(log, stamp));
    const moved = withNewOrigin(log, { origin: randomOrigin(random), publicKey: null }, endorse, nowIso);
    // The next round reads what was written. The mark goes last: until then each start takes another new origin.
    if (await writeLog(records, { ...moved, keyspaceId: stamp.storeId }, version)) stamp.clear();
  }
}

function firstLog(
  origin: string,
  publicKey: string,
  { storeId }: StoreStamp,
  endorse: Endorse,
  nowIso: string,
): LogRecord {
  return { origin, keys: [newLogKey(origin, publicKey, endorse, nowIso)], previous: [], keyspaceId: storeId };
}

/** Whether the store was restored from a copy: what it signs could contradict what was signed before. */
export function isStamped(log: Pick<LogRecord, 'keyspaceId'>, stamp: StoreStamp): boolean {
  return stamp.isCopy() || log.keyspaceId !== stamp.storeId;
}

const RANDOM_BYTES = 4;

function randomOrigin(random: (bytes: number) => Buffer): string {
  return `localhost/dev-${random(RANDOM_BYTES).toString('hex')}`;
}

function otherOrigin(configured: string, stored: string): ConfigError {
  return new ConfigError(
    `LOG_ORIGIN is ${configured}, but the logs of this store are signed as ${stored}: set LOG_ORIGIN to that, or give the store the new name with \`ledger-trust log new-origin ${configured}\` (\`cluster log new-origin\` in a cluster).`,
  );
}

function otherKey(log: LogRecord): ConfigError {
  return new ConfigError(
    `LOG_KEY_FILE holds another key than the one that the logs of this store are signed with (fingerprint ${logKeyFingerprint(keyInUse(log))}): give the node that key, or enrol the new one with \`ledger-trust log rotate FILE\` (\`cluster log rotate\` in a cluster).`,
  );
}

/** The name of the service in its checkpoints, the keys that verify them, and what may be signed now. A LogSigner. */
export class LogIdentity {
  readonly behind: BehindLogs;
  readonly #log: LogRecord;
  readonly #key: KeyObject;

  constructor(log: LogRecord, key: KeyObject, isStamped: boolean) {
    this.#log = log;
    this.#key = key;
    this.behind = new BehindLogs(isStamped);
  }

  /** Whether a record, as it is now, names the origin, the key and the store of this node. */
  isOf(log: LogRecord | null): boolean {
    const own = this.#log;
    return (
      log !== null &&
      log.origin === own.origin &&
      log.keyspaceId === own.keyspaceId &&
      keyInUse(log).publicKey === keyInUse(own).publicKey
    );
  }

  /** The origins of all logs begin with it: `<name>/ledgers/…`, `<name>/masters/…`. */
  get serviceName(): string {
    return this.#log.origin;
  }

  /** Oldest first; the last one signs. */
  get keys(): readonly LogKeyRecord[] {
    return this.#log.keys;
  }

  /** Origins under which nothing is signed any more; oldest first. */
  get previous(): LogRecord['previous'] {
    return this.#log.previous;
  }

  /** 32 bytes. */
  get publicKey(): Buffer {
    return Buffer.from(keyInUse(this.#log).publicKey, 'base64');
  }

  /**
   * Ed25519 over the text of a checkpoint, 64 bytes. The caller has made sure that the head may be signed; this checks
   * whether the store is behind, and throws LedgerError `unavailable` then. Throws RangeError unless the first
   * line names a log of this service: the key signs nothing else.
   */
  readonly sign = (text: Uint8Array): Uint8Array => {
    if (this.behind.store) throw logBehind();
    const begin = Buffer.from(`${this.serviceName}/`, 'utf8');
    if (!begin.equals(text.subarray(0, begin.length)))
      throw new RangeError('the text does not begin with a log of this service');
    return sign(null, text, this.#key);
  };
}

/** The answer of calls that would have to sign. */
export function logBehind(): LedgerError {
  return new LedgerError(
    'unavailable',
    'Nothing is signed for this log: events that were signed may be missing here. The operator has to see to it.',
    { reason: 'log_behind' },
  );
}
