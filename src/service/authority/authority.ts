import { createPublicKey, type KeyObject } from 'node:crypto';
import { LedgerError } from '../../domain/errors.ts';
import { authorityDigest } from '../../domain/event/content.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { sha256Buffer } from '../../domain/keys/hash-buffer.ts';
import { signDigest } from '../../domain/keys/key-object.ts';
import { fingerprint } from '../../domain/keys/public-key.ts';
import { authorityKid, checkSignatureForm } from '../../domain/keys/signature.ts';
import { verifyingKey } from '../../domain/keys/verifying-key.ts';
import type { AuthoritySigner } from '../../domain/ledger/seal.ts';
import { ConfigError } from '../../runtime/start-error.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';
import { list, parserOf } from '../records/record-form.ts';
import type { VerifySignature } from '../signatures/verifying-threads.ts';

/** One key of the service's authority. Times are ISO. */
export interface AuthorityKeyRecord {
  readonly kid: string;
  /** base64, 32 bytes. */
  readonly publicKey: string;
  readonly validFrom: string;
  /** null while the key is in use. */
  readonly validTo: string | null;
  /** By the previous key, over SHA-256 of the canonical JSON of kid, public_key and valid_from. null: the first key. */
  readonly startSig: string | null;
}

interface StoredAuthority {
  /** Oldest first. */
  readonly keys: readonly AuthorityKeyRecord[];
  /** A rotation has begun: the trust of all nodes in the current key may not be renewed. */
  readonly rotating: boolean;
}

const kind = 'authority';
const id = 'keys';
const parseAuthority = parserOf<{ keys: AuthorityKeyRecord[]; rotating?: boolean }>({ keys: list });

export function otherAuthority(): ConfigError {
  return new ConfigError(
    'AUTHORITY_KEY_FILE holds another key than the one that this store was sealed with: give the node the right key, or enrol the new one with `ledger-trust authority rotate FILE`.',
  );
}

/** 32 bytes, base64. */
export function publicKeyOf(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  if (x === undefined) throw new Error('the key has no public part');
  return Buffer.from(x, 'base64url').toString('base64');
}

/** With the version of the record; 'absent' if there is none. Throws UnreadableRecord. */
export async function readAuthority(records: RecordStore): Promise<StoredAuthority & { readonly version: string }> {
  const record = await records.get(kind, id);
  if (record === null) return { keys: [], rotating: false, version: 'absent' };
  const { keys, rotating = false } = decodeStored(record, parseAuthority);
  return { keys, rotating, version: record.version };
}

export async function readAuthorityKeys(records: RecordStore): Promise<readonly AuthorityKeyRecord[]> {
  return (await readAuthority(records)).keys;
}

async function writeKeys(
  records: RecordStore,
  { keys, rotating }: StoredAuthority,
  replaces: string,
): Promise<boolean> {
  const value = JSON.stringify(rotating ? { keys, rotating } : { keys });
  return (await records.put({ kind, id, replaces, value, lookups: [] })).ok;
}

function startDigest(kid: string, publicKey: string, validFrom: string): Buffer {
  return sha256Buffer(canonicalJson({ kid, public_key: publicKey, valid_from: validFrom }));
}

/** In a store without keys this key becomes the first. Throws ConfigError if the key in use is another one. */
export async function openAuthority(records: RecordStore, privateKey: KeyObject, nowIso: string): Promise<Authority> {
  const publicKey = publicKeyOf(privateKey);
  let { keys, version } = await readAuthority(records);
  if (keys.length === 0) {
    const first = { kid: authorityKid(1), publicKey, validFrom: nowIso, validTo: null, startSig: null };
    if (!(await writeKeys(records, { keys: [first], rotating: false }, version)))
      return openAuthority(records, privateKey, nowIso);
    keys = [first];
  }
  const current = keys.at(-1);
  if (current?.publicKey !== publicKey) throw otherAuthority();
  return new Authority(keys, privateKey, current.kid);
}

/**
 * Starts a rotation: nodes that read the store from now on do not renew their trust in the key in use. Once the trust
 * of all nodes has ended (watchAuthority), nothing is sealed until a rotation is finished. Throws ConfigError.
 */
export async function beginRotation(records: RecordStore, oldKey: KeyObject): Promise<void> {
  const { keys, version } = await readAuthority(records);
  if (keys.at(-1)?.publicKey !== publicKeyOf(oldKey)) throw otherAuthority();
  if (!(await writeKeys(records, { keys, rotating: true }, version))) throw changedMeanwhile();
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
  const { keys, version } = await readAuthority(records);
  const current = keys.at(-1);
  if (current === undefined || current.publicKey !== publicKeyOf(oldKey)) throw otherAuthority();
  const publicKey = publicKeyOf(newKey);
  if (keys.some((key) => key.publicKey === publicKey))
    throw new ConfigError('This key has been the authority of the store already: make a new one.');
  const kid = authorityKid(keys.length + 1);
  const next: AuthorityKeyRecord = {
    kid,
    publicKey,
    validFrom: nowIso,
    validTo: null,
    startSig: signDigest(startDigest(kid, publicKey, nowIso), oldKey),
  };
  const ended = keys.map((key) => (key === current ? { ...key, validTo: nowIso } : key));
  if (!(await writeKeys(records, { keys: [...ended, next], rotating: false }, version))) throw changedMeanwhile();
  return next;
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
  #standing: 'in use' | 'rotating' | 'ended' = 'in use';
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
  get standing(): 'in use' | 'rotating' | 'ended' {
    return this.#standing;
  }

  /** Takes over what was read. `trustedUntil`: the end of trust that follows from this read, ISO. */
  learn({ keys, rotating }: StoredAuthority, trustedUntil: string): void {
    if (keys.length !== this.#keys.length) this.#take(keys);
    if (keys.at(-1)?.kid !== this.keyId) this.#standing = 'ended';
    else this.#standing = rotating ? 'rotating' : 'in use';
    if (this.#standing === 'in use') this.#trustedUntil = trustedUntil;
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

/** SHA-256 hex of the public key. */
export function authorityFingerprint(key: AuthorityKeyRecord): string {
  return fingerprint(Buffer.from(key.publicKey, 'base64'));
}
