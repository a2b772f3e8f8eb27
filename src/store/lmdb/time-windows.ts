import type { Commits } from './commits.ts';
import type { BytesTable, Tables } from './tables.ts';

const EMPTY = -1;
/** Entries that one commit removes. Writes of the same moment wait for that commit. */
export const removedAtOnceMax = 1_000;

/**
 * Tables whose entries are removed by age. The entries of a window of time share a table. LMDB can empty a table in
 * one commit, but it visits the table's pages, and all commits behind it wait (docs/adr/0024). So the entries of a
 * window that is over are removed in slices, and only the last slice is emptied as a table.
 *
 * Invariant: table `window % tables.length` holds entries of one window only, and `facts` says which window until the
 * table is empty. While it holds entries, the newest window never goes back, even if the clock does, so that nothing is
 * removed too early. While a window gets entries, the table of the next one is emptied. A new process continues what
 * the last one began.
 */
export class TimeWindows {
  readonly #name: string;
  readonly #windowMs: number;
  readonly #tables: readonly BytesTable[];
  readonly #facts: Tables['facts'];
  readonly #commits: Commits;
  readonly #held: number[];
  /** The windows whose entries this process is removing. It does not read them any more. */
  readonly #emptying = new Map<number, Promise<void>>();

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
   * Returns the table for new entries at `nowMs` (ms since 1970), and begins to empty the table of the next window. If
   * the returned table still holds an older window, because there was no entry in the window before or the emptying has
   * not ended, one commit empties it. Writes that the caller queues afterwards in the same turn of the event loop come
   * after that commit.
   */
  at(nowMs: number): BytesTable {
    const window = Math.max(Math.floor(nowMs / this.#windowMs), ...this.#held);
    // Not awaited: a failure breaks the whole environment, and with it the caller's write.
    if (this.#heldAt(window) !== window) this.#hold(window, window).catch(() => {});
    const oldest = this.#heldAt(window + 1);
    if (oldest !== EMPTY && !this.#emptying.has(oldest)) this.#empty(oldest).catch(() => {});
    return this.#table(window);
  }

  tables(): BytesTable[] {
    const windows = this.#held.filter((window) => window !== EMPTY && !this.#emptying.has(window));
    return windows.sort((a, b) => b - a).map((window) => this.#table(window));
  }

  /** Empties the tables of windows that ended at or before `beforeMs` (ms since 1970). Returns how many. */
  async drop(beforeMs: number): Promise<number> {
    const begun = Math.floor(beforeMs / this.#windowMs);
    const ended = this.#held.filter((window) => window !== EMPTY && window < begun);
    await Promise.all(ended.map((window) => this.#empty(window)));
    return ended.length;
  }

  #empty(window: number): Promise<void> {
    const running = this.#emptying.get(window);
    if (running !== undefined) return running;
    const emptying = this.#removeAll(window).finally(() => this.#emptying.delete(window));
    this.#emptying.set(window, emptying);
    return emptying;
  }

  async #removeAll(window: number): Promise<void> {
    const table = this.#table(window);
    while (this.#heldAt(window) === window) {
      this.#commits.checkUsable();
      const keys = Array.from(table.getKeys({ limit: removedAtOnceMax }));
      if (keys.length < removedAtOnceMax) await this.#hold(window, EMPTY);
      else
        await this.#commits.writeRepeatable('The store did not say whether old entries were removed.', () =>
          table.batch(() => {
            for (const key of keys) table.remove(key);
          }),
        );
    }
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
