/** Most events of a stream that were taken and whose outcome was not handed out yet. */
const eventsMax = 512;
/** With fewer a ledger's commits would be small, however slow the node is. */
const eventsMin = 16;
/** A stream begins with so many: whether the node is busy shows in their outcomes. */
const eventsAtFirst = 64;
/** In characters, which is in bytes where there is nothing but ASCII. */
const lengthMax = 8 * 1024 * 1024;
/** An outcome that takes longer shows that the node has more to do than it can: a tenth of the time that a command is given. */
const timelyMs = 1_000;

/**
 * What a stream has open, and whether it may take more. As many events as have their outcomes in time: one more for each that was timely, one
 * fewer for each that was late. What a busy node does not come to then waits with its caller, instead of here until its time is up.
 */
export class OpenEvents {
  #count = 0;
  #length = 0;
  #most = eventsAtFirst;

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

  /** There is an outcome, so many milliseconds after the event was taken. */
  settled(tookMs: number): void {
    const most = this.#most + (tookMs <= timelyMs ? 1 : -1);
    this.#most = Math.min(Math.max(most, eventsMin), eventsMax);
  }

  handedOut(length: number): void {
    this.#count -= 1;
    this.#length -= length;
  }
}
