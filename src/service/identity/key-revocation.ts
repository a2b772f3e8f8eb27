import { type Clock, sleep } from '../../actors/clock.ts';
import { isoTime } from '../../domain/time.ts';
import { afterPartialWrite } from '../partial-failure.ts';
import type { ActorRecord } from './actor-record.ts';
import type { Identities } from './identities.ts';
import type { KeyEndings } from './key-endings.ts';
import { beginEnd, revokedAtOf, revokeKey } from './signing-keys.ts';

/** A key that is to end. */
export interface Revocation {
  readonly actorId: string;
  readonly kid: string;
  /** Anyone can read it. */
  readonly reason: string | null;
  /** When the call first came, milliseconds since 1970: run again, it finds the end that it set itself. */
  readonly askedMs: number;
}

/** Ends a key for good; resolves once no ledger dates an event under it any more. Throws `not_found` and `key_not_active`. */
export type RevokeKey = (revocation: Revocation) => Promise<void>;

/**
 * How keys are revoked (decisions.md, section 4). `leadMs`: how far ahead an end is dated, so that all other nodes know of it by then; 0
 * for a node that stands alone.
 */
export function keyRevocation(identities: Identities, endings: KeyEndings, clock: Clock, leadMs: number): RevokeKey {
  const endsAt = (askedMs: number, aheadMs: number) => Math.max(askedMs, clock.now()) + aheadMs;

  /** One write. Not from when the call came: until here events were taken under the key, in this very millisecond too. */
  const endAlone = ({ actorId, kid, reason, askedMs }: Revocation): Promise<ActorRecord> => {
    const revokedAtMs = endsAt(askedMs, 1);
    return endings.during(kid, isoTime(revokedAtMs), () =>
      identities.update(actorId, (actor) =>
        isRevokedSince(actor, kid, askedMs) ? actor : revokeKey(actor, kid, reason, revokedAtMs),
      ),
    );
  };

  /**
   * Two writes. Other nodes take events under the key until they read that its end has begun, and nobody knows how long that takes to be
   * stored. So its end is dated only when that is certain: by a write that has resolved, and not by a mark that was merely read.
   * Whatever happens in between, the key is used by nobody, and whoever revokes it again goes on from there.
   */
  const endAmongOthers = async ({ actorId, kid, reason, askedMs }: Revocation): Promise<ActorRecord> => {
    const marked = await identities.update(actorId, (actor) =>
      isRevokedSince(actor, kid, askedMs) ? actor : beginEnd(actor, kid, clock.now()),
    );
    if (revokedAtOf(marked, kid) !== null) return marked;
    const revokedAtMs = endsAt(askedMs, leadMs);
    return afterPartialWrite(
      identities.update(actorId, (actor) =>
        // Another call may have dated it meanwhile.
        revokedAtOf(actor, kid) === null ? revokeKey(actor, kid, reason, revokedAtMs) : actor,
      ),
    );
  };

  return async (revocation) => {
    const ended = await (leadMs === 0 ? endAlone(revocation) : endAmongOthers(revocation));
    const endMs = Date.parse(revokedAtOf(ended, revocation.kid) ?? '');
    // Once this is answered no ledger may date an event before the revocation.
    while (clock.now() < endMs) await sleep(clock, endMs - clock.now());
  };
}

function isRevokedSince(actor: ActorRecord, kid: string, sinceMs: number): boolean {
  const revokedAt = revokedAtOf(actor, kid);
  return revokedAt !== null && revokedAt > isoTime(sinceMs);
}
