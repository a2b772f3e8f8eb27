import { LedgerError } from '../../domain/errors.ts';
import type { FairPlaces } from '../../runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { eventLoopBudget } from '../limits/event-loop-budget.ts';
import { outOfMemoryBudget } from '../limits/out-of-memory-budget.ts';

/**
 * Memory of each walk from its first page on: a page of the store, which ends with the row that reaches pageCharsMax,
 * two bytes a character, and what is made of it.
 */
const pageHoldBytes = 4 * 1024 * 1024;
/** What is kept for the answer is in memory as it was read, as a message, and as encoded text. */
const copiesKept = 3;
/** The held memory grows by multiples of this, which the budget counts exactly: `end` releases their sum at once. */
const holdStepBytes = 64 * 1024;

export interface WalkParts {
  readonly places: Pick<FairPlaces, 'take' | 'leave'>;
  readonly memory: MemoryBudget;
}

export interface WalkCost {
  /** Events, lines, records, and the keys of actors. */
  readonly examined: number;
  readonly chars: number;
  /** Signatures. */
  readonly verified: number;
}

/**
 * All reads of one call that may be long. Every page of a store is requested through the walk, which enforces the
 * bounds: a place among the node's walks, the event loop budget, the node's memory budget, and the end of the call.
 *
 * Invariant: the place and memory that `readPage` takes are released by `end`, which is called once, after the answer
 * was sent.
 */
export class Walk {
  readonly signal: AbortSignal;
  readonly #parts: WalkParts;
  readonly #caller: string;
  #entering: Promise<void> | null = null;
  #hasPlace = false;
  #ended = false;
  #heldBytes = 0;
  #keptBytes = 0;
  #examined = 0;
  #chars = 0;
  #verified = 0;

  /** `caller`: the key under which the walk is counted. `signal` aborts at the end of the call. */
  constructor(parts: WalkParts, caller: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#caller = caller;
    this.signal = signal;
  }

  get cost(): WalkCost {
    return { examined: this.#examined, chars: this.#chars, verified: this.#verified };
  }

  /** Throws `unavailable` if nobody waits for the answer any more. */
  check(): void {
    if (this.signal.aborted || this.#ended) throw endedWalk();
  }

  /**
   * To be called before a piece of work on the main thread. null: the work may start at once, else after the promise.
   * Throws, or rejects, as `check` does.
   */
  whenFree(): Promise<void> | null {
    this.check();
    return eventLoopBudget.whenFree()?.then(() => this.check()) ?? null;
  }

  /** Counts what was read, parsed or hashed. */
  use(records: number, chars: number): void {
    eventLoopBudget.use(records, chars);
  }

  verify(signatures: number): void {
    this.#verified += signatures;
  }

  /** Requests many things from a store. Throws as `check` does; `overloaded` if there is no place or memory. */
  async readPage<T>(
    ask: () => Promise<T>,
    sizeOf: (found: T) => { readonly count: number; readonly chars: number },
  ): Promise<T> {
    this.check();
    if (!this.#hasPlace) {
      this.#entering ??= this.#enter();
      await this.#entering;
    }
    const found = await this.readOne(ask);
    const { count, chars } = sizeOf(found);
    this.#examined += count;
    this.#chars += chars;
    this.use(count, chars);
    return found;
  }

  async readOne<T>(ask: () => Promise<T>): Promise<T> {
    const wait = this.whenFree();
    if (wait !== null) await wait;
    try {
      return await ask();
    } catch (error) {
      this.check();
      throw error;
    }
  }

  /**
   * Runs reads that need so many bytes beside the page that the walk holds. `isHeld` says whether the memory budget has
   * room for them; if not, the reads have to do without.
   */
  async withMore<T>(bytes: number, run: (isHeld: boolean) => Promise<T>): Promise<T> {
    const isHeld = this.#parts.memory.hold('read', bytes);
    try {
      return await run(isHeld);
    } finally {
      if (isHeld) this.#parts.memory.release('read', bytes);
    }
  }

  /** Counts characters of what was read that are kept for the answer. Throws `overloaded`. */
  keep(chars: number): void {
    this.#keptBytes += chars * copiesKept;
    const wanted = this.#keptBytes + pageHoldBytes;
    if (wanted > this.#heldBytes) this.#hold(Math.ceil((wanted - this.#heldBytes) / holdStepBytes) * holdStepBytes);
  }

  /** Waits until the answer may be encoded within the event loop budget. Throws as `check` does. */
  async beforeAnswer(): Promise<void> {
    if (this.#keptBytes === 0) return;
    const wait = this.whenFree();
    if (wait !== null) await wait;
    this.use(0, this.#keptBytes / copiesKept);
  }

  /** Releases what the walk has taken. Later reads through it throw. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#heldBytes > 0) this.#parts.memory.release('read', this.#heldBytes);
    if (this.#hasPlace) this.#parts.places.leave(this.#caller);
  }

  async #enter(): Promise<void> {
    const waits = this.#parts.places.take(this.#caller, this.signal, endedWalk);
    if (waits !== null) await waits;
    if (this.#ended) {
      this.#parts.places.leave(this.#caller);
      throw endedWalk();
    }
    this.#hasPlace = true;
    this.#hold(pageHoldBytes);
  }

  #hold(bytes: number): void {
    if (!this.#parts.memory.hold('read', bytes)) throw outOfMemoryBudget();
    this.#heldBytes += bytes;
  }
}

/** A walk without bounds, apart from its signal: for reads that belong to no call. */
export function unboundedWalk(signal: AbortSignal = new AbortController().signal): Walk {
  return new Walk(noBounds, '', signal);
}

const noBounds: WalkParts = {
  places: { take: () => null, leave: () => {} },
  memory: new MemoryBudget(Number.POSITIVE_INFINITY),
};

/** The error of a walk whose answer nobody waits for any more. */
function endedWalk(): LedgerError {
  return new LedgerError(
    'unavailable',
    'The call ended before all of it was read: retry; a long list can be read from its other end (order).',
  );
}
