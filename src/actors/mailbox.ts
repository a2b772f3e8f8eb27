import type { Command } from '../domain/command.ts';
import { LedgerError } from '../domain/errors.ts';
import type { Outcome } from './outcome.ts';

/** A command with whoever waits for its outcome. */
export interface Letter {
  readonly command: Command;
  /** Estimated size in a batch, bytes. */
  readonly bytes: number;
  resolve(outcome: Outcome): void;
  reject(error: Error): void;
}

export interface MailboxLimits {
  readonly lettersMax: number;
  readonly bytesMax: number;
}

/** Letters in the order of their arrival. Bounded: a full mailbox refuses (`overloaded`) instead of growing. */
export class Mailbox {
  readonly #limits: MailboxLimits;
  #letters: Letter[] = [];
  /** Letters before this index are taken; the array is cut now and then, so that taking is cheap. */
  #first = 0;
  #bytes = 0;

  constructor(limits: MailboxLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#letters.length - this.#first;
  }

  /** Throws `overloaded` when full; nothing is kept then. */
  push(letter: Letter): void {
    if (this.size >= this.#limits.lettersMax || this.#bytes + letter.bytes > this.#limits.bytesMax) {
      throw new LedgerError(
        'overloaded',
        'This ledger has more waiting calls than it can hold; nothing was written, retry in a moment.',
      );
    }
    this.#letters.push(letter);
    this.#bytes += letter.bytes;
  }

  /** The next letters: at most `count` and `bytes`, but at least one if there is one. */
  take(count: number, bytes: number): Letter[] {
    const taken: Letter[] = [];
    let sum = 0;
    while (taken.length < count && this.#first < this.#letters.length) {
      const letter = this.#letters[this.#first];
      if (letter === undefined || (taken.length > 0 && sum + letter.bytes > bytes)) break;
      taken.push(letter);
      sum += letter.bytes;
      this.#first += 1;
    }
    this.#bytes -= sum;
    if (this.#first > 1_024 || this.#first === this.#letters.length) {
      this.#letters = this.#letters.slice(this.#first);
      this.#first = 0;
    }
    return taken;
  }

  /** Everything that waits, leaving the mailbox empty. */
  drain(): Letter[] {
    return this.take(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }
}
