import { LedgerError } from '../domain/errors.ts';
import { forwardingLedgers } from '../store/forwarding.ts';
import type { LedgerStore } from '../store/ledger-store.ts';

/** Refuses claims and appends while this node's clock is implausible. Reads go on. */
export function datedAppends(store: LedgerStore, isClockGood: () => boolean): LedgerStore {
  const check = (): void => {
    if (!isClockGood())
      throw new LedgerError(
        'unavailable',
        'Nothing was written: the clock of this node is out of range. Retry when its operator has set it.',
      );
  };
  return {
    ...forwardingLedgers(store),
    claim: async (ledgerId) => {
      check();
      return store.claim(ledgerId);
    },
    append: async (claim, entries) => {
      check();
      return store.append(claim, entries);
    },
  };
}
