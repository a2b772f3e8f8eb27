import { commandKeyLifeMs } from '../../domain/event.ts';
import type { Commits } from './commits.ts';
import type { BytesTable, Tables } from './tables.ts';

/** Marks are found for at least this long, and for less than twice as long. */
const commandWindowMs = commandKeyLifeMs;
const EMPTY = -1;

/**
 * The tables that command marks go to. Time is cut into windows of 24 hours; the marks of a window share a table, so
 * that forgetting them is emptying a table. This window and the one before it are looked up; the third table is
 * emptied a whole window before it is needed, so that no append waits for it.
 *
 * Invariant: table `window % 3` holds marks of the one window that `facts` names for it. The window never goes back,
 * whatever the clock does.
 */
export class CommandWindows {
  readonly #tables: Tables;
  readonly #commits: Commits;
  readonly #now: () => number;
  readonly #held: number[];

  constructor(tables: Tables, commits: Commits, now: () => number) {
    this.#tables = tables;
    this.#commits = commits;
    this.#now = now;
    this.#held = tables.commands.map((_, slot) => Number(tables.facts.get(factKey(slot)) ?? EMPTY));
  }

  /** The table for marks made now. Writes put into it later in this turn come after what a new window has to empty. */
  current(): BytesTable {
    const entered = Math.max(...this.#held);
    const window = Math.floor(this.#now() / commandWindowMs);
    if (window > entered) this.#enter(window);
    return this.#table(Math.max(window, entered));
  }

  /** The newest mark under a key of keys.ts, of this window or of the one before. */
  find(key: Uint8Array): Uint8Array | undefined {
    const entered = Math.max(...this.#held);
    for (const window of [entered, entered - 1]) {
      if (window < 0 || this.#held[window % this.#held.length] !== window) continue;
      const mark = this.#table(window).get(key);
      if (mark !== undefined) return mark;
    }
    return undefined;
  }

  #table(window: number): BytesTable {
    const table = this.#tables.commands[window % this.#held.length];
    if (table === undefined) throw new RangeError(`No window: ${window}`);
    return table;
  }

  #enter(window: number): void {
    this.#hold(window, window);
    if ((this.#held[(window + 1) % this.#held.length] ?? EMPTY) !== EMPTY) this.#hold(window + 1, EMPTY);
  }

  /** Empties the table of `window` and notes what it holds from now on. A failure breaks the whole environment, so nobody waits. */
  #hold(window: number, held: number): void {
    const slot = window % this.#held.length;
    const wasEmpty = this.#held[slot] === EMPTY;
    this.#held[slot] = held;
    const table = this.#table(window);
    const { facts } = this.#tables;
    const written = this.#commits.write(() =>
      facts.batch(() => {
        if (!wasEmpty) table.clearAsync();
        facts.put(factKey(slot), String(held));
      }),
    );
    written.catch(() => {});
  }
}

function factKey(slot: number): Buffer {
  return Buffer.from(`commands-${slot}`);
}
