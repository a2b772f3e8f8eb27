import type { CqlSession } from '../src/store/cassandra/session/session.ts';
import type { Member } from './placement/members.ts';

/**
 * A node whose clock is off by more than this, ms, decides nothing: the ends of grants and keys, and the dates of
 * events, need clocks that agree.
 */
export const clockOffMaxMs = 500;
/** With three samples, two servers of the store outvote one with a wrong clock. */
const samplesKept = 3;
const NOW = 'SELECT toTimestamp(now()) AS now FROM system.local';

interface Sample {
  /** How far this node's clock was ahead of the store's, ms. Negative if it was behind. */
  readonly aheadMs: number;
  /**
   * This node's wall clock minus its monotonic clock at that moment, ms. Setting the wall clock changes the difference.
   */
  readonly wallMinusMonotonicMs: number;
}

/**
 * Measures how far this node's clock is off the store's, and how long the store has not answered this node. The
 * monotonic clock shows at once if the wall clock is set between two looks.
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

  /** The absolute value of `aheadMs`. null before the first look. */
  get offMs(): number | null {
    const { aheadMs } = this;
    return aheadMs === null ? null : Math.abs(aheadMs);
  }

  /** Milliseconds since the store last answered a look. */
  get silentMs(): number {
    return this.#monotonicMs() - this.#answeredAt;
  }

  /** Compares the clocks once. If the store does not answer, the last samples stay. Never rejects. */
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

/**
 * Returns how far this clock is at least ahead of another one, ms. Negative if it is behind. The other clock showed
 * `there` at some moment between `before` and `after` of this clock.
 */
export function clockAhead(before: number, there: number, after: number): number {
  if (there < before) return before - there;
  return there > after ? after - there : 0;
}

/** Returns how far the two clocks differ at least, ms. */
export function clockOff(before: number, there: number, after: number): number {
  return Math.abs(clockAhead(before, there, after));
}

/**
 * Whether a node may decide and date events. It may not before its clock was compared (`aheadMs` null), nor while its
 * clock is off the store's.
 *
 * Exception: if two or more nodes are all off by the same time, the store's clock is the wrong one, and the nodes
 * continue. A node that is alone cannot tell which of the two clocks is wrong.
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
