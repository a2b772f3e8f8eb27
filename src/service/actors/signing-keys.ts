import { LedgerError } from '../../domain/errors.ts';
import { checkPublicKey } from '../../domain/keys/public-key.ts';
import { actorKid } from '../../domain/keys/signature.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ActorRecord, SigningKeyRecord } from './actor-record.ts';

/** Active keys of one actor: enough for one per machine, and a new one beside each during a change. */
const activeKeysMax = 200;
/** Keys of one actor in all, 1.3 MB with the longest reasons: old signatures need the revoked keys too. */
const keysEverMax = 1_000;

/**
 * Adds a key (base64). It becomes the preferred one if there is none. Throws `invalid_public_key`, `already_exists`, or
 * `invalid_argument` if the actor has too many keys.
 */
export function enrolKey(actor: ActorRecord, publicKey: string, nowMs: number): ActorRecord {
  checkPublicKey(publicKey);
  if (actor.keys.some((key) => key.publicKey === publicKey)) {
    throw new LedgerError('already_exists', 'This public key is, or was, enrolled for this actor: make a new one.');
  }
  if (actor.keys.filter((key) => key.revokedAt === null).length >= activeKeysMax)
    throw tooMany(`An actor may have at most ${activeKeysMax} active keys: revoke one first.`, activeKeysMax);
  if (actor.keys.length >= keysEverMax)
    throw tooMany(
      `An actor may have at most ${keysEverMax} keys in all, revoked ones included: make a new actor.`,
      keysEverMax,
    );
  const at = isoTime(nowMs);
  const key: SigningKeyRecord = {
    kid: actorKid(actor.actorId, actor.keys.length + 1),
    publicKey,
    preferred: !actor.keys.some((held) => held.preferred),
    validFrom: at,
    createdAt: at,
    revokedAt: null,
    revokedReason: null,
  };
  return { ...actor, keys: [...actor.keys, key] };
}

function tooMany(message: string, limit: number): LedgerError {
  return new LedgerError('invalid_argument', message, { field: 'public_key', limit });
}

/** Makes one active key the preferred one. Throws `not_found` or `key_not_active`. */
export function preferKey(actor: ActorRecord, kid: string): ActorRecord {
  const chosen = findKid(actor, kid);
  if (!isInUse(chosen)) {
    throw new LedgerError('key_not_active', 'A revoked key cannot be preferred: choose an active one.');
  }
  return { ...actor, keys: actor.keys.map((key) => ({ ...key, preferred: key.kid === kid })) };
}

/**
 * Sets `endingSince`. A key that already has it keeps it; the returned record is new, so that it is written again.
 * Throws `not_found` or `key_not_active`.
 */
export function beginEnd(actor: ActorRecord, kid: string, nowMs: number): ActorRecord {
  return changeEnd(actor, kid, ({ endingSince = isoTime(nowMs) }) => ({ endingSince }));
}

/** Revokes a key for good. Throws `not_found` or `key_not_active`. */
export function revokeKey(actor: ActorRecord, kid: string, reason: string | null, revokedAtMs: number): ActorRecord {
  return changeEnd(actor, kid, () => ({ revokedAt: isoTime(revokedAtMs), revokedReason: reason }));
}

/** If the key was preferred, the newest key in use becomes the preferred one. */
function changeEnd(
  actor: ActorRecord,
  kid: string,
  change: (key: SigningKeyRecord) => Partial<SigningKeyRecord>,
): ActorRecord {
  const chosen = activeKey(actor, kid);
  const keys = actor.keys.map((key) => (key === chosen ? { ...key, ...change(key), preferred: false } : key));
  const heir = chosen.preferred ? keys.findLast(isInUse) : undefined;
  return { ...actor, keys: keys.map((key) => (key === heir ? { ...key, preferred: true } : key)) };
}

/** The key, if its end is not dated. Throws `not_found` or `key_not_active`. */
export function activeKey(actor: ActorRecord, kid: string): SigningKeyRecord {
  const key = findKid(actor, kid);
  if (key.revokedAt !== null) throw new LedgerError('key_not_active', 'This key is revoked already.');
  return key;
}

/** When the key ended, or ends (ISO). null if its end is not dated. Throws `not_found`. */
export function revokedAtOf(actor: ActorRecord, kid: string): string | null {
  return findKid(actor, kid).revokedAt;
}

function findKid(actor: ActorRecord, kid: string): SigningKeyRecord {
  const found = actor.keys.find((key) => key.kid === kid);
  if (found === undefined) throw new LedgerError('not_found', 'This actor has no such key.', { field: 'kid' });
  return found;
}

/** Whether calls may be signed with the key. A key whose end has begun is ACTIVE until the end is dated. */
export function isInUse(key: SigningKeyRecord): boolean {
  return key.revokedAt === null && key.endingSince === undefined;
}

export function keyStatus(key: SigningKeyRecord): 'ACTIVE' | 'REVOKED' {
  return key.revokedAt === null ? 'ACTIVE' : 'REVOKED';
}
