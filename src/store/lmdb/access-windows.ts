import type { Commits } from './commits.ts';
import type { BytesTable, Tables } from './tables.ts';

/** Long enough that few windows cover 90 days, short enough that little is kept much longer than that. */
const accessWindowMs = 15 * 24 * 60 * 60 * 1000;
/** 90 days are seven windows, with the ones that are begun; the eighth is there to be emptied. */
const SLOTS = 8;
const EMPTY = -1;

export interface AccessWindow {
  readonly table: BytesTable;
  readonly window: number;
}

/**
 * The tables that access events go to. Time is cut into windows, and the events of a window share a table, so that
 * forgetting them is emptying a table, whatever it holds.
 *
 * Invariant: table `window % 8` holds what was handed over in the one window that `facts` names for it. The newest window
 * never goes back, whatever the clock does: so nothing is dropped before its own time has come.
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

  /** The table for events of that time. Writes put into it later in this turn come after what a new window has to empty. */
  at(timeMs: number): BytesTable {
    const window = Math.max(windowOf(timeMs), ...this.#held);
    const slot = window % SLOTS;
    // A failure breaks the whole environment, so nobody waits for it.
    if (this.#held[slot] !== window) this.#hold(slot, window).catch(() => {});
    return this.#table(slot);
  }

  /** The windows that hold anything, oldest first. */
  windows(): AccessWindow[] {
    return this.#held
      .flatMap((window, slot) => (window === EMPTY ? [] : [{ window, table: this.#table(slot) }]))
      .sort((a, b) => a.window - b.window);
  }

  /** Empties the windows that ended at or before a time. Answers how many. */
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

  /** Empties a slot and notes what it holds from now on. */
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
