import type { Commits } from '../commits.ts';
import type { BytesTable, Tables } from '../tables.ts';

/** Long enough for few windows to cover 90 days, short enough for little to be kept much longer than 90 days. */
const accessWindowMs = 15 * 24 * 60 * 60 * 1000;
/** 90 days touch at most seven windows, two of them in part. The eighth table can be emptied meanwhile. */
const SLOTS = 8;
const EMPTY = -1;

interface AccessWindow {
  readonly table: BytesTable;
  readonly window: number;
}

/**
 * The tables of access events. Time is cut into windows, and the events of a window share a table. So events are
 * removed by emptying a table, at a cost that does not depend on their number.
 *
 * Invariant: table `window % 8` holds events of one window only, and `facts` says which window. The newest window never
 * goes back, even if the clock does, so that no event is dropped too early.
 */
export class AccessWindows {
  readonly #facts: Tables['facts'];
  readonly #tables: readonly BytesTable[];
  readonly #commits: Commits;
  readonly #held: number[];

  constructor({ root, facts }: Tables, commits: Commits) {
    this.#facts = facts;
    this.#tables = Array.from({ length: SLOTS }, (_, slot) =>
      root.openDB({ name: `access-${slot}`, encoding: 'binary', keyEncoding: 'binary' }),
    );
    this.#commits = commits;
    this.#held = this.#tables.map((_, slot) => Number(facts.get(factKey(slot)) ?? EMPTY));
  }

  /**
   * Returns the table for events of a time. If a new window begins, this queues the emptying of its table. Writes that
   * the caller queues afterwards in the same turn of the event loop come after the emptying.
   */
  at(timeMs: number): BytesTable {
    const window = Math.max(windowOf(timeMs), ...this.#held);
    const slot = window % SLOTS;
    // Not awaited: a failure breaks the whole environment, and with it the caller's write.
    if (this.#held[slot] !== window) this.#hold(slot, window).catch(() => {});
    return this.#table(slot);
  }

  /** Returns the windows that hold events, oldest first. */
  windows(): AccessWindow[] {
    return this.#held
      .flatMap((window, slot) => (window === EMPTY ? [] : [{ window, table: this.#table(slot) }]))
      .sort((a, b) => a.window - b.window);
  }

  /** Empties the windows that ended at or before a time (ms since 1970). Returns how many. */
  async drop(beforeMs: number): Promise<number> {
    const ended = windowOf(beforeMs);
    const drops = this.#held.flatMap((window, slot) =>
      window !== EMPTY && window < ended ? [this.#hold(slot, EMPTY)] : [],
    );
    await Promise.all(drops);
    return drops.length;
  }

  #table(slot: number): BytesTable {
    const table = this.#tables[slot];
    if (table === undefined) throw new RangeError(`No slot: ${slot}`);
    return table;
  }

  /** Empties a slot's table and stores which window it holds from now on. */
  #hold(slot: number, held: number): Promise<boolean> {
    const wasEmpty = this.#held[slot] === EMPTY;
    this.#held[slot] = held;
    const table = this.#table(slot);
    return this.#commits.write(() =>
      this.#facts.batch(() => {
        if (!wasEmpty) table.clearAsync();
        this.#facts.put(factKey(slot), String(held));
      }),
    );
  }
}

function windowOf(timeMs: number): number {
  return Math.floor(timeMs / accessWindowMs);
}

function factKey(slot: number): Buffer {
  return Buffer.from(`access-${slot}`);
}
