import type { StoreInspection } from '../../src/store/store-inspection.ts';

const nothing = async function* () {};

/** The inspection of a store in which nothing stands beside the logs. `projectedSeq` is that of every ledger. */
export function emptyInspection(projectedSeq = -1): StoreInspection {
  return {
    ledgerIds: nothing,
    newestBatch: async () => ({ projectedSeq, pending: [] }),
    damagedRowsOf: nothing,
    damagedRows: nothing,
    misdatedRows: nothing,
    records: nothing,
    scopeEntries: async () => [],
    commandKeys: nothing,
    strayBuckets: nothing,
    fullBuckets: nothing,
    cells: nothing,
    lines: nothing,
  };
}
