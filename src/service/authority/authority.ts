import { createPublicKey, type KeyObject } from 'node:crypto';
import { LedgerError } from '../../domain/errors.ts';
import { authorityDigest } from '../../domain/event/content.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { signDigest } from '../../domain/keys/key-object.ts';
import { authorityKid, checkSignatureForm } from '../../domain/keys/signature.ts';
import { verifyingKey } from '../../domain/keys/verifying-key.ts';
import type { AuthoritySigner } from '../../domain/ledger/seal.ts';
import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { unreadableRecord } from '../../store/unreadable-record.ts';
import {
  decodeRecord,
  type FormOf,
  flag,
  listOf,
  objectOf,
  optional,
  orNull,
  type RecordForm,
  text,
  textOrNull,
  time,
} from '../records/record-form.ts';
import type { VerifySignature } from '../signatures/verifying-threads.ts';
import {
  type AuthorityKeyList,
  type AuthorityKeyRecord,
  authorityFingerprint,
  isSigned,
  listDigest,
  signList,
  signStart,
  whyRefused,
  wrongForm,
  wrongStart,
} from './key-list.ts';

interface StoredAuthority extends AuthorityKeyList {
  /** A rotation has begun: the trust of all nodes in the current key may not be renewed. */
  readonly rotating: boolean;
}

interface VersionedAuthority extends StoredAuthority {
  /** Of the record, as RecordStore names it. */
  readonly version: string;
}

const kind = 'authority';
const id = 'keys';

type AuthorityValue = Partial<StoredAuthority> & Pick<StoredAuthority, 'keys'>;

const keyForm: FormOf<AuthorityKeyRecord> = {
  kid: text,
  publicKey: text,
  validFrom: time,
  validTo: orNull(time),
  startSig: textOrNull,
};

/** Versions before 0.2.0 write no `listSig`, and ignore it. */
export const authorityRules: RecordForm<AuthorityValue> = {
  kind,
  form: { keys: listOf(objectOf(keyForm)), rotating: optional(flag), listSig: optional(text) },
};

/** 32 bytes, base64. */
export function publicKeyOf(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  if (x === undefined) throw new Error('the key has no public part');
  return Buffer.from(x, 'base64url').toString('base64');
}

/** The list as it is stored, believed or not. The version of no record is 'absent'. Throws UnreadableRecord. */
export async function readAuthority(records: RecordStore): Promise<VersionedAuthority> {
  const record = await records.get(kind, id);
  if (record === null) return { keys: [], rotating: false, listSig: null, version: 'absent' };
  const { keys, rotating = false, listSig = null } = decodeRecord(record, authorityRules);
  return { keys, rotating, listSig, version: record.version };
}

/** As they are stored, believed or not. */
export async function readAuthorityKeys(records: RecordStore): Promise<readonly AuthorityKeyRecord[]> {
  return (await readAuthority(records)).keys;
}

/** The list, if `newest` is the authority's key in use and has signed it. Throws ConfigError. */
export async function believedAuthority(records: RecordStore, newest: KeyObject): Promise<VersionedAuthority> {
  const stored = await readAuthority(records);
  checkBelieved(stored, newest);
  return stored;
}

function checkBelieved(stored: AuthorityKeyList, newest: KeyObject): void {
  const publicKey = publicKeyOf(newest);
  if (stored.keys.at(-1)?.publicKey !== publicKey)
    throw new ConfigError(
      'AUTHORITY_KEY_FILE holds another key than the one that this store was sealed with: give the node the right key, or enrol the new one with `ledger-trust authority rotate FILE`.',
    );
  const why = whyRefused(stored, [publicKey]);
  if (why !== null) throw refusedList(stored, why);
}

function refusedList({ listSig }: AuthorityKeyList, why: string): ConfigError {
  const restore = 'estore the record from a backup, and find out who can write to the store.';
  const remedy =
    listSig === null
      ? `If a version before 0.2.0 wrote it last, run \`ledger-trust authority confirm\` (\`cluster confirm-authority\` in a cluster). Otherwise r${restore}`
      : `R${restore}`;
  return new ConfigError(
    `The stored list of the authority's keys (record kind authority, id keys) is not believed, because ${why}. ${remedy}`,
  );
}

async function writeKeys(
  records: RecordStore,
  { keys, rotating }: Omit<StoredAuthority, 'listSig'>,
  newest: KeyObject,
  replaces: string,
): Promise<boolean> {
  const value = JSON.stringify({ keys, listSig: signList(keys, newest), ...(rotating ? { rotating } : {}) });
  return (await records.put({ kind, id, replaces, value, lookups: [] })).ok;
}

/**
 * In a store without keys this key becomes the first. Throws ConfigError if the key in use is another one, or has not
 * signed the list.
 */
export async function openAuthority(records: RecordStore, privateKey: KeyObject, nowIso: string): Promise<Authority> {
  for (;;) {
    const stored = await readAuthority(records);
    const newest = stored.keys.at(-1);
    if (newest !== undefined) {
      checkBelieved(stored, privateKey);
      return new Authority(stored.keys, privateKey, newest.kid);
    }
    const first = { kid: authorityKid(1), publicKey: publicKeyOf(privateKey), validFrom: nowIso, validTo: null };
    await writeKeys(records, { keys: [{ ...first, startSig: null }], rotating: false }, privateKey, stored.version);
  }
}

/**
 * Signs a list of one key that a version before 0.2.0 wrote. A list that was cut off to its newest key has the same
 * form, so the caller has checked first that this key has endorsed the keys of the log. Throws ConfigError if the list
 * is not believed.
 */
export async function signOlderList(records: RecordStore, newest: KeyObject): Promise<void> {
  for (;;) {
    const stored = await believedAuthority(records, newest);
    if (stored.listSig !== null || (await writeKeys(records, stored, newest, stored.version))) return;
  }
}

/**
 * Starts a rotation: nodes that read the store from now on do not renew their trust in the key in use. Once the trust
 * of all nodes has ended (watchAuthority), nothing is sealed until a rotation is finished. Throws ConfigError.
 */
export async function beginRotation(records: RecordStore, oldKey: KeyObject): Promise<void> {
  const { keys, version } = await believedAuthority(records, oldKey);
  if (!(await writeKeys(records, { keys, rotating: true }, oldKey, version))) throw changedMeanwhile();
}

function changedMeanwhile(): ConfigError {
  return new ConfigError('The keys of the authority were changed meanwhile: try again.');
}

/** Enrols the authority's next key, signed by the one in use, which ends. Throws ConfigError. */
export async function rotateAuthority(
  records: RecordStore,
  oldKey: KeyObject,
  newKey: KeyObject,
  nowIso: string,
): Promise<AuthorityKeyRecord> {
  const { keys, version } = await believedAuthority(records, oldKey);
  const publicKey = publicKeyOf(newKey);
  if (keys.some((key) => key.publicKey === publicKey))
    throw new ConfigError('This key has been the authority of the store already: make a new one.');
  const next = { kid: authorityKid(keys.length + 1), publicKey, validFrom: nowIso, validTo: null };
  const record: AuthorityKeyRecord = { ...next, startSig: signStart(next, oldKey) };
  const ended = keys.map((key, at) => (at === keys.length - 1 ? { ...key, validTo: nowIso } : key));
  if (!(await writeKeys(records, { keys: [...ended, record], rotating: false }, newKey, version)))
    throw changedMeanwhile();
  return record;
}

/**
 * Signs the stored list for an operator who has compared it with a trust anchor that was kept elsewhere. `digest` is
 * the one that was shown with the list, in hex. undefined: the list is shown, and nothing is signed. Returns sentences
 * for the operator. Throws ConfigError if the list is another one now, if `newest` is not its last key, if a key does
 * not descend from the one before, or if no service wrote such a list.
 */
export async function confirmAuthority(
  records: RecordStore,
  newest: KeyObject,
  digest: string | undefined,
): Promise<string> {
  const stored = await readAuthority(records);
  const { keys, rotating, version } = stored;
  const last = keys.at(-1);
  if (last === undefined)
    throw new ConfigError('The store has no authority yet, so there is no list to confirm: start a node on it once.');
  if (last.publicKey !== publicKeyOf(newest))
    throw new ConfigError(
      `AUTHORITY_KEY_FILE holds another key than ${last.kid} (fingerprint ${authorityFingerprint(last)}), the newest of the list: set it to the file of that key, such as NEW.pem of a rotation that broke off.`,
    );
  const wrong = wrongStart(keys) ?? wrongForm(keys);
  if (wrong !== null)
    throw new ConfigError(`The list cannot be confirmed, because ${wrong}: restore the record from a backup.`);
  const shown = Buffer.from(listDigest(keys)).toString('hex');
  if (digest === undefined) return describeList(stored, shown);
  if (digest !== shown)
    throw new ConfigError(
      'The stored list has another digest: look at it again, by the same command without a digest.',
    );
  if (!(await writeKeys(records, { keys, rotating }, newest, version))) throw changedMeanwhile();
  return "The list of the authority's keys is signed: nodes start with it.";
}

function describeList(list: AuthorityKeyList, digest: string): string {
  const rows = list.keys.map(
    (key) =>
      `${key.kid} ${authorityFingerprint(key)} from ${key.validFrom}${key.validTo === null ? '' : ` to ${key.validTo}`}`,
  );
  if (isSigned(list))
    return [...rows, 'The newest key has signed this list: nothing needs to be confirmed.'].join('\n');
  const signature =
    list.listSig === null
      ? []
      : ['The stored signature is not of this list: somebody has changed it. Find out who can write to the store.'];
  const next = `Compare names, fingerprints and dates with a trust anchor that was kept elsewhere. If all are the authority's, run the same command with this digest of the list:\n${digest}`;
  return [...rows, ...signature, next].join('\n');
}

/**
 * Signs and verifies seals. In a cluster the key is trusted for a limited time, which each read of the store extends.
 * So no event with a later date is sealed, however long the process is paused in between.
 */
export class Authority implements AuthoritySigner {
  readonly keyId: string;
  readonly #privateKey: KeyObject;
  #keys: readonly AuthorityKeyRecord[] = [];
  #publicKeys: ReadonlyMap<string, KeyObject | null> = new Map();
  #keyState: 'in use' | 'rotating' | 'ended' = 'in use';
  /** ISO. null: no limit, on a single node. '' is before all times. */
  #trustedUntil: string | null = null;

  constructor(keys: readonly AuthorityKeyRecord[], privateKey: KeyObject, keyId: string) {
    this.keyId = keyId;
    this.#privateKey = privateKey;
    this.#take(keys);
  }

  get keys(): readonly AuthorityKeyRecord[] {
    return this.#keys;
  }

  /** State of this node's key as of the last read. 'ended': replaced by another. */
  get keyState(): 'in use' | 'rotating' | 'ended' {
    return this.#keyState;
  }

  /**
   * Takes over what was read. `trustedUntil`: the end of trust that follows from this read, ISO. Throws
   * UnreadableRecord for a list that is not believed: nothing is taken over then, and the trust is not renewed.
   */
  learn({ keys, rotating, listSig }: StoredAuthority, trustedUntil: string): void {
    const known = this.#keys.map(({ publicKey }) => publicKey);
    const why = whyRefused({ keys, listSig }, known);
    if (why !== null) throw unreadableRecord(kind, id, why);
    if (keys.length !== this.#keys.length) this.#take(keys);
    if (keys.at(-1)?.kid !== this.keyId) this.#keyState = 'ended';
    else this.#keyState = rotating ? 'rotating' : 'in use';
    if (this.#keyState === 'in use') this.#trustedUntil = trustedUntil;
    else this.#trustedUntil ??= '';
  }

  sign(digest: Buffer, createdAt: string): string {
    if (this.#trustedUntil !== null && createdAt > this.#trustedUntil)
      throw new LedgerError(
        'unavailable',
        'This node cannot seal events, since it does not know its key to be that of the authority now. Retry.',
      );
    return signDigest(digest, this.#privateKey);
  }

  #take(keys: readonly AuthorityKeyRecord[]): void {
    this.#keys = keys;
    this.#publicKeys = new Map(keys.map((key) => [key.kid, verifyingKey(key.publicKey)]));
  }

  /** Whether the event's seal is a valid signature of the event's hash by one of the authority's keys. */
  async verifySeal(event: LedgerEvent, verify: VerifySignature): Promise<boolean> {
    const key = event.authorityKeyId === null ? null : (this.#publicKeys.get(event.authorityKeyId) ?? null);
    if (key === null || event.authoritySig === null) return false;
    let signature: Uint8Array;
    try {
      signature = checkSignatureForm(event.authoritySig);
    } catch {
      return false;
    }
    return verify(authorityDigest(event.hash), signature, key);
  }
}
