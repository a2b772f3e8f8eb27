import { StartError } from '../src/runtime/start-error.ts';
import { clockSkewMs } from '../src/store/cassandra/writetimes.ts';
import type { Member } from './placement/members.ts';

/**
 * A node whose clock is off by more than this, ms, decides nothing: the ends of grants and keys, and the dates of
 * events, need clocks that agree.
 */
export const clockOffMaxMs = 500;
/** Of three samples, two outvote one from a server with a wrong clock. */
const samplesKept = 3;

interface Sample {
  /** How far this node's clock was ahead of the store's, ms. Negative if it was behind. */
  readonly aheadMs: number;
  /** This node's wall clock minus its monotonic clock, ms. Setting the wall clock changes the difference. */
  readonly wallMinusMonotonicMs: number;
}

/** Measures how far this node's clock is off the store's, and how long the store has not answered this node. */
export class ClockCheck {
  readonly #storeTime: () => Promise<number>;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  #samples: readonly Sample[] = [];
  #answeredAt: number;

  /** `storeTime`: the time of the store's clock (SharedStores). `now`: of this node's wall clock. */
  constructor(storeTime: () => Promise<number>, now: () => number, monotonicMs: () => number) {
    this.#storeTime = storeTime;
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#answeredAt = monotonicMs();
  }

  /**
   * How far this node's clock is at least ahead of the store's, ms, however long the answers took. Negative if it is
   * behind, null before the first look. The median of the last three looks; of two looks, the smaller difference.
   */
  get aheadMs(): number | null {
    const shift = this.#now() - this.#monotonicMs();
    const found = this.#samples.map(({ aheadMs, wallMinusMonotonicMs }) => aheadMs + shift - wallMinusMonotonicMs);
    found.sort((a, b) => Math.abs(a) - Math.abs(b));
    const median = found[Math.floor((found.length - 1) / 2)];
    return median === undefined ? null : Math.round(median);
  }

  /** Milliseconds since the store last answered a look. */
  get silentMs(): number {
    return this.#monotonicMs() - this.#answeredAt;
  }

  /** Compares the clocks once. If the store does not answer, the last samples stay. Never rejects. */
  async look(): Promise<void> {
    const before = this.#now();
    const there = await this.#storeTime().catch(() => null);
    const after = this.#now();
    if (there === null) return;
    this.#answeredAt = this.#monotonicMs();
    const sample = {
      aheadMs: clockAhead(before, there, after),
      wallMinusMonotonicMs: after - this.#answeredAt,
    };
    this.#samples = [sample, ...this.#samples].slice(0, samplesKept);
  }
}

/**
 * Returns how far this clock is at least ahead of another one, ms; negative: behind. The other clock showed `there`
 * between `before` and `after` of this clock.
 */
export function clockAhead(before: number, there: number, after: number): number {
  if (there < before) return before - there;
  return there > after ? after - there : 0;
}

/**
 * Compares the clocks once, for a command that looks for rows that are dated ahead. Throws StartError if this clock is
 * further off the store's than that search allows for: it would report sound rows, or none.
 */
export async function checkClock(storeTime: () => Promise<number>, now: () => number): Promise<void> {
  const before = now();
  const there = await storeTime();
  const aheadMs = clockAhead(before, there, now());
  if (Math.abs(aheadMs) <= clockSkewMs) return;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  throw new StartError(
    `The clock of this machine is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of Cassandra, so that wrong times of rows cannot be told from right ones: there is no result; mend time synchronisation and run again.`,
  );
}

/**
 * Whether a node may decide and date events. It may not before the first comparison (`aheadMs` null), nor while its
 * clock is off the store's. Exception: if two or more nodes are all off by the same time, the store's clock is wrong.
 */
export function isClockRight(aheadMs: number | null, members: readonly Member[], self: string): boolean {
  if (aheadMs === null) return false;
  if (Math.abs(aheadMs) <= clockOffMaxMs) return true;
  const others = members.filter(({ id }) => id !== self);
  const agrees = ({ clockAheadMs }: Member) =>
    clockAheadMs !== undefined &&
    Math.abs(clockAheadMs) > clockOffMaxMs &&
    Math.abs(clockAheadMs - aheadMs) <= clockOffMaxMs;
  return others.length > 0 && others.every(agrees);
}

type ClockState = 'right' | 'refused' | 'store';

/** Raises one alarm each time that the clock of this node, or of the store, becomes wrong. */
export class ClockWarning {
  readonly #alarmed: (sentence: string) => void;
  #reported: ClockState = 'right';

  constructor(alarmed: (sentence: string) => void) {
    this.#alarmed = alarmed;
  }

  /** Call it after each comparison of the clocks. `isRight`: whether this node may decide. */
  look(aheadMs: number | null, isRight: boolean): void {
    if (aheadMs === null) return;
    const state = stateOf(aheadMs, isRight);
    if (state !== this.#reported && state !== 'right') this.#alarmed(sentenceOf(state, aheadMs));
    this.#reported = state;
  }
}

function stateOf(aheadMs: number, isRight: boolean): ClockState {
  if (!isRight) return 'refused';
  return Math.abs(aheadMs) > clockOffMaxMs ? 'store' : 'right';
}

function sentenceOf(state: Exclude<ClockState, 'right'>, aheadMs: number): string {
  const offMs = Math.abs(aheadMs);
  return state === 'refused'
    ? `the clock of this node is ${offMs} ms off the clock of the store: it decides nothing and gives its shards away until time synchronisation is mended`
    : `the clock of the store is ${offMs} ms off the clocks of all nodes, which agree: mend the time synchronisation of Cassandra; the nodes go on by their own clocks`;
}
