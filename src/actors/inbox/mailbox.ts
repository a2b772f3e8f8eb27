import { LedgerError } from '../../domain/errors.ts';
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

/** Commands in the order of their arrival. A full mailbox refuses (`overloaded`) instead of growing. */
export class Mailbox {
  readonly #limits: MailboxLimits;
  readonly #waiting: PendingCommand[] = [];
  #bytes = 0;

  constructor(limits: MailboxLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Throws `overloaded` if the mailbox is full. An empty mailbox takes a command of any size. */
  push(pending: PendingCommand): void {
    if (this.size > 0) {
      if (this.size >= this.#limits.commandsMax) throw ledgerIsFull('LEDGER_QUEUE_MAX');
      if (this.#bytes + pending.bytes > this.#limits.bytesMax) throw ledgerIsFull('LEDGER_QUEUE_MIB');
    }
    this.#waiting.push(pending);
    this.#bytes += pending.bytes;
  }

  holds(count: number, bytes: number): boolean {
    return this.size >= count || this.#bytes >= bytes;
  }

  /** Takes the next commands: at most `count` and `bytes`, but at least one if one waits. */
  take(count: number, bytes: number): PendingCommand[] {
    let taken = 0;
    let sum = 0;
    for (const pending of this.#waiting) {
      if (taken >= count || (taken > 0 && sum + pending.bytes > bytes)) break;
      taken += 1;
      sum += pending.bytes;
    }
    this.#bytes -= sum;
    return this.#waiting.splice(0, taken);
  }

  waiting(): Iterable<PendingCommand> {
    return this.#waiting.values();
  }

  drain(): PendingCommand[] {
    return this.take(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }
}
