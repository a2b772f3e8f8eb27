import type { LedgerEvent } from '../domain/event.ts';
import { wrongHash } from '../domain/integrity.ts';

/** The stored log does not hold together: nothing is decided on it, and nothing guessed. */
export class BrokenChain extends Error {
  constructor(detail: string) {
    super(`the stored chain is broken: ${detail}`);
    this.name = 'BrokenChain';
  }
}

/** Throws BrokenChain for an event of another ledger, or one that is not what its hashes seal. */
export function checkStored(event: LedgerEvent, ledgerId: string): void {
  if (event.ledgerId !== ledgerId) throw new BrokenChain(`ledger ${ledgerId} holds an event of another ledger`);
  const wrong = wrongHash(event);
  if (wrong !== null) throw new BrokenChain(`ledger ${ledgerId}, seq ${event.seq}: ${wrong}`);
}
