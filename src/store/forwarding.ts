import type { LedgerStore } from './ledger-store.ts';

/**
 * A store that forwards every call to `store`, with all arguments. A wrapper spreads it and replaces some methods: the
 * methods of a class cannot be spread.
 */
export function forwardingLedgers(store: LedgerStore): LedgerStore {
  return {
    claim: (...args) => store.claim(...args),
    append: (...args) => store.append(...args),
    stands: (...args) => store.stands(...args),
    head: (...args) => store.head(...args),
    certainHead: (...args) => store.certainHead(...args),
    read: (...args) => store.read(...args),
    readScope: (...args) => store.readScope(...args),
    scopeSeqs: (...args) => store.scopeSeqs(...args),
    findCommands: (...args) => store.findCommands(...args),
    cell: (...args) => store.cell(...args),
    lines: (...args) => store.lines(...args),
    snapshot: (...args) => store.snapshot(...args),
    saveSnapshot: (...args) => store.saveSnapshot(...args),
  };
}
