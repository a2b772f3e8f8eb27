import { batchEventsMax } from '../../actors/bounds.ts';

/** Upper limit of a stream's open events. */
const eventsMax = 512;
/** Initial and lowest limit. With a lower one a ledger's batches would be smaller than every store accepts. */
const eventsMin = batchEventsMax;
/** How much the limit grows after as many timely outcomes as the limit allows. */
const growth = 16;
/** Limit of the open events' text, in characters (bytes if it is ASCII). */
const lengthMax = 8 * 1024 * 1024;
/**
 * A later outcome shows that the node is overloaded: a tenth of a command's time limit. With a fifth a busy cluster was
 * slower, because events that stay open longer are copied by more garbage collections
 * (docs/adr/0022-streams-bound-their-open-events.md).
 */
const timelyMs = 1_000;

/**
 * Limits the open events of a stream, from their arrival until their outcome is sent. The limit grows slowly while
 * outcomes are timely and is halved when they are late, as TCP's congestion window, so that the streams of a node
 * converge to equal limits. Excess events of a busy node wait with their caller instead of timing out here.
 */
export class OpenEvents {
  #count = 0;
  #length = 0;
  #most = eventsMin;

  get count(): number {
    return this.#count;
  }

  get mayTake(): boolean {
    return this.#count < this.#most && this.#length < lengthMax;
  }

  taken(length: number): void {
    this.#count += 1;
    this.#length += length;
  }

  /** Records an outcome, `tookMs` milliseconds after the event was taken; Infinity if the caller has to retry. */
  settled(tookMs: number): void {
    const change = tookMs <= timelyMs ? growth / this.#most : -1 / 2;
    this.#most = Math.min(Math.max(this.#most + change, eventsMin), eventsMax);
  }

  handedOut(length: number): void {
    this.#count -= 1;
    this.#length -= length;
  }
}
