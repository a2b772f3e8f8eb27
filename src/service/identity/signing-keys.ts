import { LedgerError } from '../../domain/errors.ts';
import { checkPublicKey } from '../../domain/public-key.ts';
import { actorKid } from '../../domain/signature.ts';
import { isoTime } from '../../domain/time.ts';
import type { ActorRecord, SigningKeyRecord } from './actor-record.ts';

/** Keys of one actor, revoked ones included: they all stand in its record and in its public document. */
export const keysPerActorMax = 200;

/** A new key for an actor, base64; throws `invalid_public_key`. The first key of an actor becomes the preferred one. */
export function enrolKey(actor: ActorRecord, publicKey: string, nowMs: number): ActorRecord {
  checkPublicKey(publicKey);
  if (actor.keys.some((key) => key.publicKey === publicKey)) {
    throw new LedgerError('already_exists', 'This public key is, or was, enrolled for this actor: make a new one.');
  }
  if (actor.keys.length >= keysPerActorMax) {
    throw new LedgerError(
      'invalid_argument',
      `An actor may have at most ${keysPerActorMax} keys, revoked ones included.`,
      {
        limit: keysPerActorMax,
      },
    );
  }
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

/** Makes one active key the preferred one. Throws `not_found` or `key_not_active`. */
export function preferKey(actor: ActorRecord, kid: string): ActorRecord {
  const chosen = findKid(actor, kid);
  if (chosen.revokedAt !== null) {
    throw new LedgerError('key_not_active', 'A revoked key cannot be preferred: choose an active one.');
  }
  return { ...actor, keys: actor.keys.map((key) => ({ ...key, preferred: key.kid === kid })) };
}

/** Revokes a key for good; the newest active one takes its place as the preferred. Throws `not_found` or `key_not_active`. */
export function revokeKey(actor: ActorRecord, kid: string, reason: string | null, revokedAtMs: number): ActorRecord {
  const chosen = findKid(actor, kid);
  if (chosen.revokedAt !== null) throw new LedgerError('key_not_active', 'This key is revoked already.');
  const keys = actor.keys.map((key) =>
    key.kid === kid ? { ...key, preferred: false, revokedAt: isoTime(revokedAtMs), revokedReason: reason } : key,
  );
  const heir = chosen.preferred ? keys.findLast((key) => key.revokedAt === null) : undefined;
  return { ...actor, keys: keys.map((key) => (key === heir ? { ...key, preferred: true } : key)) };
}

function findKid(actor: ActorRecord, kid: string): SigningKeyRecord {
  const found = actor.keys.find((key) => key.kid === kid);
  if (found === undefined) throw new LedgerError('not_found', 'This actor has no such key.', { field: 'kid' });
  return found;
}

export function keyStatus(key: SigningKeyRecord): 'ACTIVE' | 'REVOKED' {
  return key.revokedAt === null ? 'ACTIVE' : 'REVOKED';
}
