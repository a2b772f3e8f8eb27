import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';

/** The stored log of a ledger is damaged at `seq`. Nothing is decided on it. `detail` is for the log only. */
export class BrokenChain extends LedgerError {
  constructor(ledgerId: string, seq: number, detail: string, cause?: unknown) {
    super(
      'unavailable',
      'Stored events of this ledger are damaged, so nothing was written. Reads go on and name the damage in `integrity`; retry when the operator has restored the events.',
      { ledger_id: ledgerId, seq },
      new Error(`the stored chain is broken: ledger ${ledgerId}, seq ${seq}: ${detail}`, { cause }),
    );
    this.name = 'BrokenChain';
  }
}

/** Throws BrokenChain if the row holds no event, and LedgerError `unavailable` if it has another format. */
export function readStored({ seq, row }: StoredEntry, ledgerId: string): LedgerEvent {
  try {
    return parseRow(row);
  } catch (error) {
    if (error instanceof LedgerError) throw error;
    throw new BrokenChain(ledgerId, seq, 'the row is no event any more', error);
  }
}

export function checkStored(event: LedgerEvent, ledgerId: string): void {
  if (event.ledgerId !== ledgerId) throw new BrokenChain(ledgerId, event.seq, 'it is an event of another ledger');
  const wrong = wrongHash(event);
  if (wrong !== null) throw new BrokenChain(ledgerId, event.seq, wrong);
}
