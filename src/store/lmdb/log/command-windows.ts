import { commandKeyLifeMs } from '../../../domain/event/event.ts';
import type { Commits } from '../commits.ts';
import type { BytesTable, Tables } from '../tables.ts';

/** Command keys are found for at least this long, and for less than twice as long, ms. */
const commandWindowMs = commandKeyLifeMs;
const EMPTY = -1;

/**
 * The tables of command keys that are not permanent. Time is cut into windows of 24 hours, and the keys of a window
 * share a table. So keys are removed by emptying a table. Look-ups read the current window and the one before it. The
 * third table is emptied a whole window before it is needed, so that no append waits for the emptying.
 *
 * Invariant: table `window % 3` holds keys of one window only, and `facts` says which window. The current window never
 * goes back, even if the clock does.
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

  /**
   * Returns the table for new command keys. If a new window begins, this queues the emptying of tables. Writes that the
   * caller queues afterwards in the same turn of the event loop come after the emptying.
   */
  current(): BytesTable {
    const entered = Math.max(...this.#held);
    const window = Math.floor(this.#now() / commandWindowMs);
    if (window > entered) this.#enter(window);
    return this.#table(Math.max(window, entered));
  }

  /** Returns the newest value under a key of commandKey (keys.ts), of the current window or of the one before. */
  find(key: Uint8Array): Uint8Array | undefined {
    const entered = Math.max(...this.#held);
    for (const window of [entered, entered - 1]) {
      if (window < 0 || this.#held[window % this.#held.length] !== window) continue;
      const value = this.#table(window).get(key);
      if (value !== undefined) return value;
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

  /**
   * Empties the table of `window` and stores which window it holds from now on. Not awaited: a failure breaks the whole
   * environment, and with it the caller's write.
   */
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
