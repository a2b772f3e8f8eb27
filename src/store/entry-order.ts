import { sha256HexForm } from '../domain/keys/hash.ts';
import type { LedgerEntry } from './ledger-store.ts';
import { checkOrder } from './store-text.ts';

/** The first and last of consecutive entries that were checked. */
interface EntryRun {
  readonly first: LedgerEntry;
  readonly last: LedgerEntry;
}

/**
 * Checks the entries of an append, independently of the ledger's head. Throws TypeError unless there is at least one
 * entry and each follows the previous one by seq and hash. Throws RangeError if no store can sort by the order of a
 * line.
 */
export function checkEntryRun(entries: readonly LedgerEntry[]): EntryRun {
  const first = entries[0];
  if (first === undefined) throw new TypeError('An append has at least one entry');
  if (!Number.isSafeInteger(first.seq) || first.seq < 0) throw new TypeError(`No seq: ${first.seq}`);
  if ((first.seq === 0) !== (first.prevHash === ''))
    throw new TypeError('The first entry, and it alone, follows no hash');
  let last = first;
  for (const entry of entries) {
    if (!sha256HexForm.test(entry.hash)) throw new TypeError('A hash is 64 lower-case hex digits');
    if (entry.row === '') throw new TypeError('A row is never empty');
    if (entry !== first && (entry.seq !== last.seq + 1 || entry.prevHash !== last.hash))
      throw new TypeError(`Entry ${entry.seq} does not follow entry ${last.seq}`);
    for (const projection of entry.projections) if (projection.kind === 'line') checkLineOrder(projection.order);
    last = entry;
  }
  return { first, last };
}

function checkLineOrder(order: string): void {
  if (order === '') throw new TypeError('A line has an order');
  checkOrder(order);
}
