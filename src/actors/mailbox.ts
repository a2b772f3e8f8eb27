import { LedgerError } from '../domain/errors.ts';
import type { PendingCommand } from './pending-command.ts';

export interface MailboxLimits {
  readonly commandsMax: number;
  readonly bytesMax: number;
}

function ledgerIsFull(bound: string): LedgerError {
  return new LedgerError(
    'overloaded',
    'This ledger has more waiting calls than it can hold; nothing was written, retry in a moment.',
    { bound },
  );
}

/** Letters in the order of their arrival. Bounded: a full mailbox refuses (`overloaded`) instead of growing. */
export class Mailbox {
  readonly #limits: MailboxLimits;
  /** Letters before `#first` are taken and no longer held; the array is cut now and then, so that taking is cheap. */
  #letters: (PendingCommand | undefined)[] = [];
  #first = 0;
  #bytes = 0;

  constructor(limits: MailboxLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#letters.length - this.#first;
  }

  /** Throws `overloaded` when full; nothing is kept then. One letter always fits, whatever its size. */
  push(letter: PendingCommand): void {
    if (this.size > 0) {
      if (this.size >= this.#limits.commandsMax) throw ledgerIsFull('LEDGER_QUEUE_MAX');
      if (this.#bytes + letter.bytes > this.#limits.bytesMax) throw ledgerIsFull('LEDGER_QUEUE_MIB');
    }
    this.#letters.push(letter);
    this.#bytes += letter.bytes;
  }

  /** Whether so many letters wait, or so many bytes. */
  holds(count: number, bytes: number): boolean {
    return this.size >= count || this.#bytes >= bytes;
  }

  /** The next letters: at most `count` and `bytes`, but at least one if there is one. */
  take(count: number, bytes: number): PendingCommand[] {
    const taken: PendingCommand[] = [];
    let sum = 0;
    while (taken.length < count) {
      const letter = this.#letters[this.#first];
      if (letter === undefined || (taken.length > 0 && sum + letter.bytes > bytes)) break;
      taken.push(letter);
      sum += letter.bytes;
      this.#letters[this.#first] = undefined;
      this.#first += 1;
    }
    this.#bytes -= sum;
    if (this.#first > 1_024 || this.#first === this.#letters.length) {
      this.#letters = this.#letters.slice(this.#first);
      this.#first = 0;
    }
    return taken;
  }

  /** The letters that wait, in their order; they stay. */
  *waiting(): Iterable<PendingCommand> {
    for (let at = this.#first; at < this.#letters.length; at++) {
      const letter = this.#letters[at];
      if (letter !== undefined) yield letter;
    }
  }

  /** Everything that waits, leaving the mailbox empty. */
  drain(): PendingCommand[] {
    return this.take(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }
}
