import { LedgerError } from '../../domain/errors.ts';
import type { Call } from '../calls/call.ts';
import type { FollowersParts } from './follow-parts.ts';
import type { Follower } from './follower.ts';
import { retryHint } from './retry-hint.ts';

type SlotCall = Pick<Call, 'address' | 'endWith'>;

export interface FollowerSlot {
  readonly actorId: string;
  /** Kept, because that of a connection that has ended is not known. */
  readonly address: string;
  /** Those of its actor, with this one. */
  readonly ofActor: Slots;
  readonly call: SlotCall;
  /** null: the stream has not begun yet. */
  follower: Pick<Follower, 'end'> | null;
}

/** Oldest first. */
type Slots = readonly FollowerSlot[];

type SlotsParts = Pick<FollowersParts, 'bounds' | 'random'> & {
  readonly meter: Pick<FollowersParts['meter'], 'refused'>;
};

/**
 * The slots of the streams of a node. If none is free, a new stream takes the slot of the newest one of the actor
 * with the most, unless its own actor would then have as many as that one. Otherwise the same holds for addresses, as
 * anybody can register many actors; but only streams of actors that have more than the new one's actor are ended.
 *
 * So a stream that ends makes the actors more equal, or the addresses while the actors stay as equal as they were.
 * Callers that reconnect at once cannot displace each other for ever.
 */
export class FollowerSlots {
  readonly #parts: SlotsParts;
  readonly #byActor = new SlotsOfHolders();
  readonly #byAddress = new SlotsOfHolders();

  constructor(parts: SlotsParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#byActor.count;
  }

  /** Throws `overloaded`. Each slot is passed to `leave` at the end of its stream. */
  take(actorId: string, call: SlotCall): FollowerSlot {
    const { total, perActor } = this.#parts.bounds;
    const { address } = call;
    if (this.#byActor.of(actorId).length >= perActor) throw this.#tooMany('FOLLOWERS_PER_ACTOR_MAX', perActor);
    if (this.count >= total) {
      const other = this.#slotFor(actorId, address);
      if (other === undefined) throw this.#tooMany('FOLLOWERS_MAX', total);
      this.#end(other);
    }
    const ofActor = this.#byActor.of(actorId);
    const slot = { actorId, address, ofActor, call, follower: null };
    this.#byActor.add(actorId, ofActor, slot);
    this.#byAddress.add(address, this.#byAddress.of(address), slot);
    return slot;
  }

  /** Does nothing if the slot was taken from its stream before. */
  leave(slot: FollowerSlot): void {
    this.#byActor.delete(slot.actorId, slot);
    this.#byAddress.delete(slot.address, slot);
  }

  /** The slot that a new stream may take from another one. undefined: there is none. */
  #slotFor(actorId: string, address: string): FollowerSlot | undefined {
    const held = this.#byActor.of(actorId).length;
    const most = this.#byActor.largest;
    if (held + 1 < most.length) return most.at(-1);
    const mostOfAddress = this.#byAddress.largest;
    if (held >= most.length || this.#byAddress.of(address).length + 1 >= mostOfAddress.length) return undefined;
    return mostOfAddress.findLast(({ ofActor }) => ofActor.length > held);
  }

  #end(slot: FollowerSlot): void {
    this.leave(slot);
    const { bounds, meter, random } = this.#parts;
    const error = displaced(bounds.total, retryHint(random));
    if (slot.follower !== null) slot.follower.end(error, 'displaced');
    else {
      meter.refused('FOLLOWERS_MAX');
      slot.call.endWith(error);
    }
  }

  #tooMany(bound: string, max: number): LedgerError {
    this.#parts.meter.refused(bound);
    return tooMany(bound, max, retryHint(this.#parts.random));
  }
}

/** The slots of each holder: an actor, or an address. */
class SlotsOfHolders {
  readonly #slots = new Map<string, FollowerSlot[]>();
  /** Found when it is needed. Kept until it is shorter. */
  #largest: Slots | null = null;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** The same array as long as the holder has any. */
  of(holder: string): FollowerSlot[] {
    return this.#slots.get(holder) ?? [];
  }

  /** The slots of the holder with the most. */
  get largest(): Slots {
    let largest = this.#largest ?? [];
    if (this.#largest === null) for (const slots of this.#slots.values()) largest = longer(largest, slots);
    this.#largest = largest;
    return largest;
  }

  add(holder: string, slots: FollowerSlot[], slot: FollowerSlot): void {
    this.#slots.set(holder, slots);
    slots.push(slot);
    this.#count += 1;
    if (this.#largest !== null) this.#largest = longer(this.#largest, slots);
  }

  delete(holder: string, slot: FollowerSlot): void {
    const slots = this.of(holder);
    const at = slots.lastIndexOf(slot);
    if (at < 0) return;
    slots.splice(at, 1);
    this.#count -= 1;
    if (slots.length === 0) this.#slots.delete(holder);
    if (slots === this.#largest) this.#largest = null;
  }
}

/** The first one, if they are equal. */
function longer(one: Slots, other: Slots): Slots {
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
