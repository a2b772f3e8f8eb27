import type { Commits } from './commits.ts';
import type { BytesTable, Tables } from './tables.ts';

const EMPTY = -1;

/**
 * Tables whose entries are removed by age. The entries of a window of time share a table, which is emptied as a whole.
 * That is less work than removing its entries, but LMDB visits the table's pages, and the commits behind it wait.
 *
 * Invariant: table `window % tables.length` holds entries of one window only, and `facts` says which window. The newest
 * window never goes back, even if the clock does, so that nothing is removed too early. When a window begins, the table
 * of the next one is emptied, so that no write waits for that.
 */
export class TimeWindows {
  readonly #name: string;
  readonly #windowMs: number;
  readonly #tables: readonly BytesTable[];
  readonly #facts: Tables['facts'];
  readonly #commits: Commits;
  readonly #held: number[];

  /** With n tables an entry is kept for n - 2 windows at least. */
  constructor(name: string, windowMs: number, tables: readonly BytesTable[], facts: Tables['facts'], commits: Commits) {
    this.#name = name;
    this.#windowMs = windowMs;
    this.#tables = tables;
    this.#facts = facts;
    this.#commits = commits;
    this.#held = tables.map((_, slot) => Number(facts.get(this.#factKey(slot)) ?? EMPTY));
  }

  /**
   * Returns the table for new entries. If a window begins at `nowMs` (ms since 1970), this queues the emptying of
   * tables. Writes that the caller queues afterwards in the same turn of the event loop come after the emptying.
   */
  at(nowMs: number): BytesTable {
    const window = Math.max(Math.floor(nowMs / this.#windowMs), ...this.#held);
    if (this.#heldAt(window) !== window) {
      // Not awaited: a failure breaks the whole environment, and with it the caller's write.
      this.#hold(window, window).catch(() => {});
      if (this.#heldAt(window + 1) !== EMPTY) this.#hold(window + 1, EMPTY).catch(() => {});
    }
    return this.#table(window);
  }

  tables(): BytesTable[] {
    const windows = this.#held.filter((window) => window !== EMPTY);
    return windows.sort((a, b) => b - a).map((window) => this.#table(window));
  }

  /** Empties the tables of windows that ended at or before `beforeMs` (ms since 1970). Returns how many. */
  async drop(beforeMs: number): Promise<number> {
    const begun = Math.floor(beforeMs / this.#windowMs);
    const ended = this.#held.filter((window) => window !== EMPTY && window < begun);
    await Promise.all(ended.map((window) => this.#hold(window, EMPTY)));
    return ended.length;
  }

  #heldAt(window: number): number {
    return this.#held[window % this.#held.length] ?? EMPTY;
  }

  #table(window: number): BytesTable {
    const table = this.#tables[window % this.#held.length];
    if (table === undefined) throw new RangeError(`No window: ${window}`);
    return table;
  }

  #hold(window: number, held: number): Promise<boolean> {
    const slot = window % this.#held.length;
    const wasEmpty = this.#held[slot] === EMPTY;
    this.#held[slot] = held;
    const table = this.#table(window);
    return this.#commits.writeRepeatable('The store did not say whether a table was emptied.', () =>
      this.#facts.batch(() => {
        if (!wasEmpty) table.clearAsync();
        this.#facts.put(this.#factKey(slot), String(held));
      }),
    );
  }

  #factKey(slot: number): Buffer {
    return Buffer.from(`${this.#name}-${slot}`);
  }
}
