import type { CqlSession } from '../src/store/cassandra/session.ts';

/** A node further off than this is not ready: keys' ends and the times of events rest on clocks that agree. */
export const clockOffMaxMs = 500;
const NOW = 'SELECT toTimestamp(now()) AS now FROM system.local';

/** How far this node's clock is off the store's, and whether the store answers it at all. */
export class ClockCheck {
  readonly #session: CqlSession;
  readonly #now: () => number;
  readonly #monotonicMs: () => number;
  #offMs: number | null = null;
  #answeredAt: number;

  constructor(session: CqlSession, now: () => number, monotonicMs: () => number) {
    this.#session = session;
    this.#now = now;
    this.#monotonicMs = monotonicMs;
    this.#answeredAt = monotonicMs();
  }

  /** Milliseconds that are certain, whatever the answer took on its way; null before the first look. */
  get offMs(): number | null {
    return this.#offMs;
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
    this.#offMs = clockOff(before, now.getTime(), after);
  }
}

/** How far at least two clocks differ: `there` was read at some moment between `before` and `after` here. */
export function clockOff(before: number, there: number, after: number): number {
  if (there < before) return before - there;
  return there > after ? there - after : 0;
}
