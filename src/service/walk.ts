import { LedgerError } from '../domain/errors.ts';
import { type EventLoopBudget, eventLoopBudget } from './event-loop-budget.ts';

/**
 * Held by each walk from its first page on: a page of the store (pageCharsMax and one entry more, two bytes a character), and what the
 * walk makes of it.
 */
const pageHoldBytes = 4 * 1024 * 1024;
/** What is kept for the answer stands in memory as it was read, as a message, and as encoded text. */
const copiesKept = 3;
/** The hold grows in steps of this size. */
const holdStepBytes = 64 * 1024;

/** What the walks of a node share. */
export interface WalkParts {
  readonly places: WalkPlaces;
  readonly memory: WalkMemory;
  readonly share?: EventLoopBudget;
}

/** Places of walks that run at once; see FairPlaces. */
export interface WalkPlaces {
  take(caller: string, signal: AbortSignal, ended: () => LedgerError): Promise<void> | null;
  leave(caller: string): void;
}

/** What walks hold is counted in the memory budget of the node. `hold` throws `overloaded`. */
export interface WalkMemory {
  hold(kind: 'read', bytes: number): void;
  release(kind: 'read', bytes: number): void;
}

/** What a walk has read. */
export interface WalkCost {
  /** Events, lines, records. */
  readonly examined: number;
  readonly chars: number;
  /** Signatures. */
  readonly verified: number;
}

/**
 * All reading of one call that may be long. Every page of a store is asked for through it, so that one place sees to the bounds: it
 * ends with the caller and the deadline, takes a place among the walks of the node before its first page, takes turns with other walks on
 * the main thread, holds its memory in the node's budget, and counts what it costs.
 *
 * Invariant: what `page` took of places and memory is given back by `end`, which is called once, after the answer was handed over.
 */
export class Walk {
  readonly signal: AbortSignal;
  readonly #parts: WalkParts;
  readonly #share: EventLoopBudget;
  readonly #caller: string;
  #entering: Promise<void> | null = null;
  #hasPlace = false;
  #ended = false;
  #heldBytes = 0;
  #keptBytes = 0;
  #examined = 0;
  #chars = 0;
  #verified = 0;

  /** `caller`: whom the walk counts for. `signal` ends with the caller or the deadline. */
  constructor(parts: WalkParts, caller: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#share = parts.share ?? eventLoopBudget;
    this.#caller = caller;
    this.signal = signal;
  }

  get cost(): WalkCost {
    return { examined: this.#examined, chars: this.#chars, verified: this.#verified };
  }

  /** Throws `unavailable` where nobody waits for the answer any more. */
  check(): void {
    if (this.signal.aborted || this.#ended) throw endedWalk();
  }

  /** Before a piece of work on the main thread. null: go on at once. Else wait for it; it throws like `check`. */
  turn(): Promise<void> | null {
    this.check();
    return this.#share.turn()?.then(() => this.check()) ?? null;
  }

  /** Says that so much was read, parsed or hashed. */
  use(records: number, chars: number): void {
    this.#share.use(records, chars);
  }

  /** Counts signatures that are verified. */
  verify(signatures: number): void {
    this.#verified += signatures;
  }

  /** Asks a store for many things at once. */
  async page<T>(
    ask: () => Promise<T>,
    sizeOf: (found: T) => { readonly count: number; readonly chars: number },
  ): Promise<T> {
    this.check();
    if (!this.#hasPlace) {
      this.#entering ??= this.#enter();
      await this.#entering;
    }
    const found = await this.look(ask);
    const { count, chars } = sizeOf(found);
    this.#examined += count;
    this.#chars += chars;
    this.use(count, chars);
    return found;
  }

  /** Asks a store for one thing. */
  async look<T>(ask: () => Promise<T>): Promise<T> {
    const turn = this.turn();
    if (turn !== null) await turn;
    try {
      return await ask();
    } catch (error) {
      this.check();
      throw error;
    }
  }

  /** Says that so much of what was read is kept for the answer. Throws `overloaded`. */
  keep(chars: number): void {
    this.#keptBytes += chars * copiesKept;
    const wanted = this.#keptBytes + pageHoldBytes;
    if (wanted > this.#heldBytes) this.#hold(Math.max(wanted - this.#heldBytes, holdStepBytes));
  }

  /** Waits for the turn in which an answer of what was kept is encoded. Throws like `check`. */
  async beforeAnswer(): Promise<void> {
    if (this.#keptBytes === 0) return;
    const turn = this.turn();
    if (turn !== null) await turn;
    this.use(0, this.#keptBytes / copiesKept);
  }

  /** Gives back what the walk has taken; nothing can be read through it afterwards. */
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
    this.#parts.memory.hold('read', bytes);
    this.#heldBytes += bytes;
  }
}

/** A walk without bounds but its signal: for what is no call. */
export function unboundedWalk(signal: AbortSignal = new AbortController().signal): Walk {
  return new Walk(noBounds, '', signal);
}

const noBounds: WalkParts = {
  places: { take: () => null, leave: () => {} },
  memory: { hold: () => {}, release: () => {} },
};

/** For a walk that stops since nobody waits for it any more. */
function endedWalk(): LedgerError {
  return new LedgerError(
    'unavailable',
    'The call ended before all of it was read: retry; a long list can be read from its other end (order).',
  );
}
