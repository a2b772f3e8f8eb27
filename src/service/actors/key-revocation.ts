import { isoTime } from '../../domain/values/time.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { ActorRecord } from './actor-record.ts';
import type { Identities } from './identities.ts';
import type { KeyEndings } from './key-endings.ts';
import { activeKey, beginEnd, revokedAtOf, revokeKey } from './signing-keys.ts';

interface Revocation {
  /** As read after the call came. */
  readonly actor: ActorRecord;
  readonly kid: string;
  /** Published with the key. */
  readonly reason: string | null;
  /** When the call first came, milliseconds since 1970. A retry recognizes by it the end that an earlier run set. */
  readonly askedMs: number;
  /** That of the call. A revocation that has not written anything when it aborts is given up. */
  readonly signal: AbortSignal;
}

/**
 * Resolves once no ledger can date an event before the revocation any more. Rejects with `not_found` or
 * `key_not_active`.
 */
export type RevokeKey = (revocation: Revocation) => Promise<void>;

/** `leadMs`: how far ahead the end is dated, so that all other nodes know of it by then. 0 for a single node. */
export function keyRevocation(identities: Identities, endings: KeyEndings, clock: Clock, leadMs: number): RevokeKey {
  const endsAt = (askedMs: number, aheadMs: number) => Math.max(askedMs, clock.now()) + aheadMs;

  /**
   * One write, on a single node. The end is after now, not at the time of the call: until here events were accepted
   * under the key, in this very millisecond too.
   */
  const endAlone = ({ actor: { actorId }, kid, reason, askedMs, signal }: Revocation): Promise<ActorRecord> => {
    const revokedAtMs = endsAt(askedMs, 1);
    const end = (actor: ActorRecord): ActorRecord =>
      isRevokedSince(actor, kid, askedMs) ? actor : revokeKey(actor, kid, reason, revokedAtMs);
    return endings.during(actorId, { kid, revokedAt: isoTime(revokedAtMs) }, () =>
      identities.update(actorId, end, signal, 'first'),
    );
  };

  /**
   * Two writes, on a cluster. Other nodes accept events under the key until they read that its end has begun. So the
   * end is dated only after the first write has resolved; a stored `endingSince` that was merely read is not enough.
   * Between the writes nobody can use the key, and another revocation of it continues from there.
   */
  const endAmongOthers = async (revocation: Revocation): Promise<ActorRecord> => {
    const { kid, reason, askedMs, signal } = revocation;
    const { actorId } = revocation.actor;
    const begin = (actor: ActorRecord): ActorRecord =>
      isRevokedSince(actor, kid, askedMs) ? actor : beginEnd(actor, kid, clock.now());
    const marked = await identities.update(actorId, begin, signal, 'first');
    if (revokedAtOf(marked, kid) !== null) return marked;
    const revokedAtMs = endsAt(askedMs, leadMs);
    // Another call may have dated the end meanwhile.
    const end = (actor: ActorRecord): ActorRecord =>
      revokedAtOf(actor, kid) === null ? revokeKey(actor, kid, reason, revokedAtMs) : actor;
    return afterPartialWrite(identities.update(actorId, end, null, 'first'));
  };

  /**
   * Revocations come before all other changes of the actor, however many of these wait. So one with nothing to write
   * must not hold up another: it is answered by what was read.
   */
  const end = async (revocation: Revocation): Promise<ActorRecord> => {
    const { actor, kid, askedMs } = revocation;
    if (isRevokedSince(actor, kid, askedMs)) return actor;
    activeKey(actor, kid);
    return leadMs === 0 ? endAlone(revocation) : endAmongOthers(revocation);
  };

  return async (revocation) => {
    const ended = await end(revocation);
    const endMs = Date.parse(revokedAtOf(ended, revocation.kid) ?? '');
    while (clock.now() < endMs) await sleep(clock, endMs - clock.now());
  };
}

function isRevokedSince(actor: ActorRecord, kid: string, sinceMs: number): boolean {
  const revokedAt = revokedAtOf(actor, kid);
  return revokedAt !== null && revokedAt > isoTime(sinceMs);
}
