/** Attempts at once. */
export const attemptsMax = 64;
/** Attempts at once at one target, which is an origin: scheme, host and port. */
export const attemptsPerTargetMax = 4;
/**
 * Attempts at once at all targets that are not known to answer quickly: however many of them are slow or dead, those that answer
 * quickly have the other half.
 */
const attemptsAtUnprovenMax = 32;
/** An answer within this proves a target. */
const quickMs = 1_000;
/** Targets that are remembered as quick. */
const provenMax = 10_000;

/** How a target took an attempt: milliseconds until it answered, or that it did not, or that nothing was sent to it. */
export type Took = number | 'no_answer' | 'not_asked';

interface Target<Lane> {
  readonly origin: string;
  readonly ready: Lane[];
  active: number;
}

/**
 * Whose turn it is to send. A lane is what sends one after another; lanes of a target take turns, and so do targets. Targets that answered
 * quickly last time and those that did not stand in rings of their own.
 */
export class Targets<Lane> {
  readonly #targets = new Map<string, Target<Lane>>();
  readonly #proven = new Set<string>();
  /** Targets with a lane and a slot to spare, in the order of their turns. */
  readonly #quickRing = new Set<Target<Lane>>();
  readonly #slowRing = new Set<Target<Lane>>();
  /** Lanes that were handed out, with the ring they came from. */
  readonly #atUnproven = new Map<Lane, boolean>();
  #active = 0;
  #activeAtUnproven = 0;
  #quickTurn = true;

  get active(): number {
    return this.#active;
  }

  isQuick(origin: string): boolean {
    return this.#proven.has(origin);
  }

  /** The lane has something to send and is not sending. */
  ready(origin: string, lane: Lane): void {
    const target = this.#targets.get(origin) ?? { origin, ready: [], active: 0 };
    this.#targets.set(origin, target);
    target.ready.push(lane);
    this.#place(target);
  }

  /** Whether `next` would hand out a lane. */
  get hasNext(): boolean {
    return this.#ring() !== null;
  }

  /** The lane whose turn it is; null while there is none, or no slot. `done` gives the slot back. */
  next(): Lane | null {
    const ring = this.#ring();
    const target = ring?.values().next().value;
    if (ring === null || target === undefined) return null;
    ring.delete(target);
    const lane = target.ready.shift();
    if (lane === undefined) return null;
    const unproven = ring === this.#slowRing;
    this.#atUnproven.set(lane, unproven);
    this.#active += 1;
    this.#activeAtUnproven += unproven ? 1 : 0;
    this.#quickTurn = unproven;
    target.active += 1;
    this.#place(target);
    return lane;
  }

  /** The lane has sent, or had nothing to send after all. */
  done(origin: string, lane: Lane, took: Took): void {
    const target = this.#targets.get(origin);
    if (target === undefined || !this.#atUnproven.has(lane)) throw new Error('the lane was not sending');
    this.#active -= 1;
    this.#activeAtUnproven -= this.#atUnproven.get(lane) === true ? 1 : 0;
    this.#atUnproven.delete(lane);
    target.active -= 1;
    this.#quickRing.delete(target);
    this.#slowRing.delete(target);
    if (took !== 'not_asked') this.#judge(origin, took);
    if (target.active === 0 && target.ready.length === 0) this.#targets.delete(origin);
    else this.#place(target);
  }

  #ring(): Set<Target<Lane>> | null {
    if (this.#active >= attemptsMax) return null;
    const slow = this.#slowRing.size > 0 && this.#activeAtUnproven < attemptsAtUnprovenMax ? this.#slowRing : null;
    const quick = this.#quickRing.size > 0 ? this.#quickRing : null;
    return this.#quickTurn ? (quick ?? slow) : (slow ?? quick);
  }

  #place(target: Target<Lane>): void {
    if (target.ready.length === 0 || target.active >= attemptsPerTargetMax) return;
    (this.#proven.has(target.origin) ? this.#quickRing : this.#slowRing).add(target);
  }

  #judge(origin: string, took: number | 'no_answer'): void {
    this.#proven.delete(origin);
    if (took === 'no_answer' || took > quickMs) return;
    if (this.#proven.size >= provenMax) {
      const oldest = this.#proven.values().next();
      if (!oldest.done) this.#proven.delete(oldest.value);
    }
    this.#proven.add(origin);
  }
}
