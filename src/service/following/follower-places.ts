import { LedgerError } from '../../domain/errors.ts';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { Call } from '../calls/call.ts';
import type { FollowersParts } from './follow-parts.ts';
import type { Follower } from './follower.ts';
import { retryHint } from './retry-hint.ts';

type PlaceCall = Pick<Call, 'address' | 'endWith'>;

export interface FollowerPlace {
  readonly actorId: string;
  /** Kept, because that of a connection that has ended is not known. */
  readonly address: string;
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
 * each other in turn. Then the same holds for addresses: anybody can register many actors.
 */
export class FollowerPlaces {
  readonly #parts: PlacesParts;
  readonly #byActor: PlacesOfHolders;
  readonly #byAddress: PlacesOfHolders;

  constructor(parts: PlacesParts) {
    this.#parts = parts;
    const end = (place: FollowerPlace) => this.#end(place);
    this.#byActor = new PlacesOfHolders(parts.bounds.total, end);
    this.#byAddress = new PlacesOfHolders(parts.bounds.total, end);
  }

  get count(): number {
    return this.#byActor.count;
  }

  /** Throws `overloaded`. Each place is passed to `leave` at the end of its stream. */
  take(actorId: string, call: PlaceCall): FollowerPlace {
    const { total, perActor } = this.#parts.bounds;
    const { address } = call;
    if (this.#byActor.of(actorId) >= perActor) throw this.#tooMany('FOLLOWERS_PER_ACTOR_MAX', perActor);
    let displacing: PlacesOfHolders | null = null;
    if (this.count >= total) {
      if (this.#byActor.mayDisplace(actorId)) displacing = this.#byActor;
      else if (this.#byAddress.mayDisplace(address)) displacing = this.#byAddress;
      else throw this.#tooMany('FOLLOWERS_MAX', total);
    }
    const place = { actorId, address, call, follower: null };
    this.#byActor.add(actorId, place);
    this.#byAddress.add(address, place);
    displacing?.endNewestOfLargest();
    return place;
  }

  /** Does nothing if the place was taken from its stream before. */
  leave(place: FollowerPlace): void {
    this.#byActor.delete(place.actorId, place);
    this.#byAddress.delete(place.address, place);
  }

  #end(place: FollowerPlace): void {
    this.leave(place);
    const { bounds, meter, random } = this.#parts;
    const error = displaced(bounds.total, retryHint(random));
    if (place.follower !== null) place.follower.end(error, 'displaced');
    else {
      meter.refused('FOLLOWERS_MAX');
      place.call.endWith(error);
    }
  }

  #tooMany(bound: string, max: number): LedgerError {
    this.#parts.meter.refused(bound);
    return tooMany(bound, max, retryHint(this.#parts.random));
  }
}

/** The places of each holder: an actor, or an address. */
class PlacesOfHolders {
  readonly #share: FairShare<string>;
  /** Oldest first. */
  readonly #places = new Map<string, Set<FollowerPlace>>();

  constructor(total: number, end: (place: FollowerPlace) => void) {
    this.#share = new FairShare(total, (holder) => {
      const newest = [...(this.#places.get(holder) ?? [])].at(-1);
      if (newest !== undefined) end(newest);
    });
  }

  get count(): number {
    return this.#share.total;
  }

  of(holder: string): number {
    return this.#share.heldBy(holder);
  }

  /** Whether the holder would have fewer places than the one with the most, even with one more. */
  mayDisplace(holder: string): boolean {
    return this.of(holder) + 1 < this.#share.most;
  }

  add(holder: string, place: FollowerPlace): void {
    this.#places.set(holder, (this.#places.get(holder) ?? new Set()).add(place));
    this.#share.add(holder, 1);
  }

  delete(holder: string, place: FollowerPlace): void {
    const own = this.#places.get(holder);
    if (own === undefined || !own.delete(place)) return;
    if (own.size === 0) this.#places.delete(holder);
    this.#share.add(holder, -1);
  }

  endNewestOfLargest(): void {
    this.#share.endLargestIfFull();
  }
}

function tooMany(bound: string, max: number, hint: object): LedgerError {
  const whose = bound === 'FOLLOWERS_MAX' ? 'this node' : 'this actor';
  const message = `${max} streams follow ledgers for ${whose} already: end one first, or follow one ledger with one stream.`;
  return new LedgerError('overloaded', message, { bound, ...hint });
}

function displaced(max: number, hint: object): LedgerError {
  const message =
    `${max} streams follow ledgers for this node, most of them for this actor or address, and another one needed a ` +
    'place: follow one ledger with one stream, and resume behind the last message, after retry_after_ms.';
  return new LedgerError('overloaded', message, { bound: 'FOLLOWERS_MAX', ...hint });
}
