import { batchEventsMax } from '../../actors/bounds.ts';

/** Most events of a stream that were taken and whose outcome was not handed out yet. */
const eventsMax = 512;
/** At first, since whether the node is busy shows in their outcomes; and at least, since fewer would make the commits of one ledger smaller than any store takes. */
const eventsMin = batchEventsMax;
/** So many more once as many as are open were in time. */
const growth = 16;
/** In characters, which is in bytes where there is nothing but ASCII. */
const lengthMax = 8 * 1024 * 1024;
/**
 * An outcome that takes longer shows that the node has more to do than it can: a tenth of the time that a command is given. With a
 * fifth a busy cluster got on more slowly, since what is open for longer is copied by more collections (docs/performance.md).
 */
const timelyMs = 1_000;

/**
 * What a stream has open, and whether it may take more. The number of events is held where few outcomes are late: a bit more while they are in
 * time, half as many where they are not, as TCP holds its window, so that streams of one node come to the same. What a busy node
 * does not come to then waits with its caller, instead of here until its time is up.
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

  /** There is an outcome, so many milliseconds after the event was taken; Infinity: one that the caller has to try again. */
  settled(tookMs: number): void {
    const change = tookMs <= timelyMs ? growth / this.#most : -1 / 2;
    this.#most = Math.min(Math.max(this.#most + change, eventsMin), eventsMax);
  }

  handedOut(length: number): void {
    this.#count -= 1;
    this.#length -= length;
  }
}
