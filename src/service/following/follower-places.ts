import { LedgerError } from '../../domain/errors.ts';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { Call } from '../calls/call.ts';
import type { FollowersParts } from './follow-parts.ts';
import type { Follower } from './follower.ts';
import { retryHint } from './retry-hint.ts';

type PlaceCall = Pick<Call, 'endWith'>;

export interface FollowerPlace {
  readonly actorId: string;
  readonly call: PlaceCall;
  /** null: the stream has not begun yet. */
  follower: Pick<Follower, 'end'> | null;
}

type PlacesParts = Pick<FollowersParts, 'bounds' | 'random'> & {
  readonly meter: Pick<FollowersParts['meter'], 'refused'>;
};

/**
 * The places of the streams of a node. If none is free, a new stream takes the place of the newest one of the actor
 * with the most, unless its own actor would then have as many as that one: so equal actors do not end the streams of
 * each other in turn.
 */
export class FollowerPlaces {
  readonly #parts: PlacesParts;
  /** The streams of each actor, not their bytes. */
  readonly #share: FairShare<string>;
  /** Oldest first. */
  readonly #byActor = new Map<string, Set<FollowerPlace>>();

  constructor(parts: PlacesParts) {
    this.#parts = parts;
    this.#share = new FairShare(parts.bounds.total, (actorId) => this.#endNewest(actorId));
  }

  get count(): number {
    return this.#share.heldBytes;
  }

  /** Throws `overloaded`. Each place is passed to `leave` at the end of its stream. */
  take(actorId: string, call: PlaceCall): FollowerPlace {
    const { bounds, meter, random } = this.#parts;
    const bound = this.#boundOf(actorId);
    if (bound !== null) {
      meter.refused(bound);
      throw tooMany(bound, bound === 'FOLLOWERS_MAX' ? bounds.total : bounds.perActor, retryHint(random));
    }
    const place = { actorId, call, follower: null };
    this.#byActor.set(actorId, (this.#byActor.get(actorId) ?? new Set()).add(place));
    this.#share.add(actorId, 1);
    this.#share.endLargestIfFull();
    return place;
  }

  /** Does nothing if the place was taken from its stream before. */
  leave(place: FollowerPlace): void {
    const { actorId } = place;
    const own = this.#byActor.get(actorId);
    if (own === undefined || !own.delete(place)) return;
    if (own.size === 0) this.#byActor.delete(actorId);
    this.#share.add(actorId, -1);
  }

  #boundOf(actorId: string): string | null {
    const { total, perActor } = this.#parts.bounds;
    const ofActor = this.#share.heldBy(actorId);
    if (ofActor >= perActor) return 'FOLLOWERS_PER_ACTOR_MAX';
    return this.count >= total && ofActor + 1 >= this.#share.largestBytes ? 'FOLLOWERS_MAX' : null;
  }

  #endNewest(actorId: string): void {
    const newest = [...(this.#byActor.get(actorId) ?? [])].at(-1);
    if (newest === undefined) return;
    this.leave(newest);
    const { bounds, meter, random } = this.#parts;
    const error = displaced(bounds.total, retryHint(random));
    if (newest.follower !== null) newest.follower.end(error, 'displaced');
    else {
      meter.refused('FOLLOWERS_MAX');
      newest.call.endWith(error);
    }
  }
}

function tooMany(bound: string, max: number, hint: object): LedgerError {
  const whose = bound === 'FOLLOWERS_MAX' ? 'this node' : 'this actor';
  const message = `${max} streams follow ledgers for ${whose} already: end one first, or follow one ledger with one stream.`;
  return new LedgerError('overloaded', message, { bound, ...hint });
}

function displaced(max: number, hint: object): LedgerError {
  const message =
    `${max} streams follow ledgers for this node, most of them for this actor, and another one needed a place: ` +
    'follow one ledger with one stream, and resume behind the last message, after retry_after_ms.';
  return new LedgerError('overloaded', message, { bound: 'FOLLOWERS_MAX', ...hint });
}
