import { LedgerError } from '../../domain/errors.ts';
import type { Call } from '../calls/call.ts';
import type { FollowersParts } from './follow-parts.ts';
import type { Follower } from './follower.ts';
import { retryHint } from './retry-hint.ts';

type PlaceCall = Pick<Call, 'address' | 'endWith'>;

export interface FollowerPlace {
  readonly actorId: string;
  /** Kept, because that of a connection that has ended is not known. */
  readonly address: string;
  /** Those of its actor, with this one. */
  readonly ofActor: Places;
  readonly call: PlaceCall;
  /** null: the stream has not begun yet. */
  follower: Pick<Follower, 'end'> | null;
}

/** Oldest first. */
type Places = readonly FollowerPlace[];

type PlacesParts = Pick<FollowersParts, 'bounds' | 'random'> & {
  readonly meter: Pick<FollowersParts['meter'], 'refused'>;
};

/**
 * The places of the streams of a node. If none is free, a new stream takes the place of the newest one of the actor
 * with the most, unless its own actor would then have as many as that one. Otherwise the same holds for addresses, as
 * anybody can register many actors; but only streams of actors that have more than the new one's actor are ended.
 *
 * So a stream that ends makes the actors more equal, or the addresses while the actors stay as equal as they were.
 * Those that come again whenever they lose a stream do not end the streams of each other without end.
 */
export class FollowerPlaces {
  readonly #parts: PlacesParts;
  readonly #byActor = new PlacesOfHolders();
  readonly #byAddress = new PlacesOfHolders();

  constructor(parts: PlacesParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#byActor.count;
  }

  /** Throws `overloaded`. Each place is passed to `leave` at the end of its stream. */
  take(actorId: string, call: PlaceCall): FollowerPlace {
    const { total, perActor } = this.#parts.bounds;
    const { address } = call;
    if (this.#byActor.of(actorId).length >= perActor) throw this.#tooMany('FOLLOWERS_PER_ACTOR_MAX', perActor);
    if (this.count >= total) {
      const other = this.#placeFor(actorId, address);
      if (other === undefined) throw this.#tooMany('FOLLOWERS_MAX', total);
      this.#end(other);
    }
    const ofActor = this.#byActor.of(actorId);
    const place = { actorId, address, ofActor, call, follower: null };
    this.#byActor.add(actorId, ofActor, place);
    this.#byAddress.add(address, this.#byAddress.of(address), place);
    return place;
  }

  /** Does nothing if the place was taken from its stream before. */
  leave(place: FollowerPlace): void {
    this.#byActor.delete(place.actorId, place);
    this.#byAddress.delete(place.address, place);
  }

  /** The place that a new stream may take from another one. undefined: there is none. */
  #placeFor(actorId: string, address: string): FollowerPlace | undefined {
    const held = this.#byActor.of(actorId).length;
    const most = this.#byActor.largest;
    if (held + 1 < most.length) return most.at(-1);
    const mostOfAddress = this.#byAddress.largest;
    if (held >= most.length || this.#byAddress.of(address).length + 1 >= mostOfAddress.length) return undefined;
    return mostOfAddress.findLast(({ ofActor }) => ofActor.length > held);
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
  readonly #places = new Map<string, FollowerPlace[]>();
  /** Found when it is needed. Kept until it is shorter. */
  #largest: Places | null = null;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The same array as long as the holder has any. */
  of(holder: string): FollowerPlace[] {
    return this.#places.get(holder) ?? [];
  }

  /** The places of the holder with the most. */
  get largest(): Places {
    let largest = this.#largest ?? [];
    if (this.#largest === null) for (const places of this.#places.values()) largest = longer(largest, places);
    this.#largest = largest;
    return largest;
  }

  add(holder: string, places: FollowerPlace[], place: FollowerPlace): void {
    this.#places.set(holder, places);
    places.push(place);
    this.#count += 1;
    if (this.#largest !== null) this.#largest = longer(this.#largest, places);
  }

  delete(holder: string, place: FollowerPlace): void {
    const places = this.of(holder);
    const at = places.lastIndexOf(place);
    if (at < 0) return;
    places.splice(at, 1);
    this.#count -= 1;
    if (places.length === 0) this.#places.delete(holder);
    if (places === this.#largest) this.#largest = null;
  }
}

/** The first one, if they are equal. */
function longer(one: Places, other: Places): Places {
  return other.length > one.length ? other : one;
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
