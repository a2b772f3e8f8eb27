import type { CqlSession } from '../src/store/cassandra/session.ts';
import type { Member } from './placement/members.ts';

/** A node further off than this decides nothing: ends of grants and keys, and the times of events, rest on clocks that agree. */
export const clockOffMaxMs = 500;
/** One server of the store with a wrong clock is outvoted by two others. */
const samplesKept = 3;
const NOW = 'SELECT toTimestamp(now()) AS now FROM system.local';

interface Sample {
  /** How far this node was ahead of the store, in milliseconds; negative: behind. */
  readonly aheadMs: number;
  /** This node's clock minus its monotonic clock at that moment. A clock that is set changes it. */
  readonly wallMinusMonotonicMs: number;
}

/**
 * How far this node's clock is off the store's, and whether the store answers it at all. A clock that is set between two looks is noticed at
 * once, by the monotonic clock.
 */
export class ClockCheck {
  readonly #session: CqlSession;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  #samples: readonly Sample[] = [];
  #answeredAt: number;

  constructor(session: CqlSession, now: () => number, monotonicMs: () => number) {
    this.#session = session;
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#answeredAt = monotonicMs();
  }

  /**
   * Milliseconds that this node is certainly ahead of the store (negative: behind), whatever the answers took on their way; null before the first
   * look. The median of the last three looks; of two, the smaller one.
   */
  get aheadMs(): number | null {
    const shift = this.#now() - this.#monotonicMs();
    const found = this.#samples.map(({ aheadMs, wallMinusMonotonicMs }) => aheadMs + shift - wallMinusMonotonicMs);
    found.sort((a, b) => Math.abs(a) - Math.abs(b));
    const median = found[Math.floor((found.length - 1) / 2)];
    return median === undefined ? null : Math.round(median);
  }

  /** The same without its direction. */
  get offMs(): number | null {
    const { aheadMs } = this;
    return aheadMs === null ? null : Math.abs(aheadMs);
  }

  /** Milliseconds since the store answered a look. */
  get silentMs(): number {
    return this.#monotonicMs() - this.#answeredAt;
  }

  /** Looks; where the store does not answer, what was found last stays. */
  async look(): Promise<void> {
    const before = this.#now();
    const rows = await this.#session.read({ cql: NOW, params: [] }).catch(() => []);
    const after = this.#now();
    const now = rows[0]?.now;
    if (!(now instanceof Date)) return;
    this.#answeredAt = this.#monotonicMs();
    const sample = {
      aheadMs: clockAhead(before, now.getTime(), after),
      wallMinusMonotonicMs: after - this.#answeredAt,
    };
    this.#samples = [sample, ...this.#samples].slice(0, samplesKept);
  }
}

/** How far this clock is at least ahead of another (negative: behind): `there` was read at some moment between `before` and `after` here. */
export function clockAhead(before: number, there: number, after: number): number {
  if (there < before) return before - there;
  return there > after ? after - there : 0;
}

/** How far at least two clocks differ. */
export function clockOff(before: number, there: number, after: number): number {
  return Math.abs(clockAhead(before, there, after));
}

/**
 * Whether a node may decide and date. It may not while its clock is off the store's, or not compared yet. If all nodes (two or more) are off the
 * store by the same time, the store's clock is the wrong one, and they go on. A node that is alone cannot tell which of the two clocks is wrong.
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
