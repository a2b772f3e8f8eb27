import { LedgerError } from './domain/errors.ts';
import type { LedgerStore } from './store/ledger-store.ts';

/** The same ledgers; nothing is claimed or appended, and `unavailable` says so, while this node's clock is not to be believed. */
export function datedAppends(store: LedgerStore, isClockGood: () => boolean): LedgerStore {
  const check = (): void => {
    if (!isClockGood())
      throw new LedgerError(
        'unavailable',
        'Nothing was written: the clock of this node is out of range. Retry when its operator has set it.',
      );
  };
  return {
    claim: async (ledgerId) => {
      check();
      return store.claim(ledgerId);
    },
    append: async (claim, entries) => {
      check();
      return store.append(claim, entries);
    },
    stands: (claim, head) => store.stands(claim, head),
    head: (ledgerId) => store.head(ledgerId),
    read: (ledgerId, from, limit) => store.read(ledgerId, from, limit),
    readScope: (ledgerId, scope, page) => store.readScope(ledgerId, scope, page),
    scopeSeqs: (ledgerId, scope, page) => store.scopeSeqs(ledgerId, scope, page),
    findCommands: (ledgerId, marks) => store.findCommands(ledgerId, marks),
    cell: (key) => store.cell(key),
    lines: (list, page) => store.lines(list, page),
    snapshot: (owner) => store.snapshot(owner),
    saveSnapshot: (owner, snapshot) => store.saveSnapshot(owner, snapshot),
  };
}
