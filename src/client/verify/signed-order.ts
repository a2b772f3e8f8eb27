import type { Event } from '../event.ts';
import { type Tail, TailCount } from './tail.ts';
import type { IncompleteReason } from './verification.ts';

/**
 * Up to where the service itself has signed the order and the dates of the events. What an actor signs covers type,
 * ledger and payload alone, and anybody can recompute hashes: without a key of anybody, events that actors signed can
 * be left out, dated otherwise, repeated and put in another order, with all hashes made to fit.
 */
export class SignedOrder {
  /** Behind the last seal. */
  readonly #unsealed = new TailCount();

  /** `isSealed`: the seal of the event verified, over a hash that was recomputed from the event before. */
  take(event: Event, isSealed: boolean): void {
    if (isSealed) this.#unsealed.beginAnew();
    else this.#unsealed.add(event);
  }

  /** `uncovered`: what no checkpoint covers, null if there is none. Returns null if all events are covered. */
  finding(uncovered: Tail | null): IncompleteReason | null {
    const unsealed = this.#unsealed.tail;
    const { count, eventId } = uncovered !== null && uncovered.count < unsealed.count ? uncovered : unsealed;
    if (count === 0) return null;
    const events = count === 1 ? 'event' : `${count} events`;
    const detail = `the order and the dates of the last ${events}: no seal and no checkpoint covers them`;
    return { type: 'order_unsigned', detail, eventId, count };
  }
}
