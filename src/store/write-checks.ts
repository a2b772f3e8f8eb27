import { sha256HexForm } from '../domain/keys/hash.ts';
import { type AccessEvent, accessTime } from './access-log.ts';
import type { LedgerEntry } from './ledger-store.ts';
import type { RecordWrite } from './record-store.ts';
import { orderMaxBytes, originMaxBytes, recordIdMaxBytes } from './store-text.ts';
import { type HashPlace, hashBytes, levelsMax, tileHashes } from './tile-store.ts';

/** Checks of what is to be written. Every store makes them before it writes anything. */

/**
 * Checks the entries of an append, independently of the ledger's head, and returns the first and the last. Throws
 * TypeError unless there is at least one entry and each follows the previous one by seq and hash. Throws RangeError if
 * no store can sort by the order of a line.
 */
export function checkEntryRun(entries: readonly LedgerEntry[]): {
  readonly first: LedgerEntry;
  readonly last: LedgerEntry;
} {
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
    for (const projection of entry.projections) {
      if (projection.kind !== 'line') continue;
      if (projection.order === '') throw new TypeError('A line has an order');
      checkOrder(projection.order);
    }
    last = entry;
  }
  return { first, last };
}

/** Throws RangeError or TypeError if no store could carry out the put. */
export function checkRecordWrite({ id, lookups, expiresAt }: RecordWrite): void {
  if (id === '' || !isSortable(id, recordIdMaxBytes))
    throw new RangeError(`A record id has 1 to ${recordIdMaxBytes} bytes of well-formed text without NUL`);
  const seen = new Set<string>();
  for (const { name, value, order } of lookups) {
    checkOrder(order);
    const key = JSON.stringify([name, value]);
    if (seen.has(key)) throw new TypeError(`A record stands once under look-up ${name}`);
    seen.add(key);
  }
  if (expiresAt !== undefined && (!Number.isSafeInteger(expiresAt) || expiresAt < 0))
    throw new TypeError('expiresAt is a whole number of milliseconds');
}

/** Throws RangeError unless the ids of the events are UUIDv7 and ascend. */
export function checkAccessOrder(events: readonly AccessEvent[]): void {
  let last = '';
  for (const { id } of events) {
    if (id <= last) throw new RangeError(`Access events come in the order of their ids: ${id} stands behind ${last}`);
    accessTime(id);
    last = id;
  }
}

/** Throws RangeError unless the hashes are a part of one tile. */
export function checkHashes({ owner, level, position }: HashPlace, hashes: readonly Uint8Array[]): void {
  checkOrigin(owner);
  if (!Number.isSafeInteger(level) || level < 0 || level >= levelsMax) throw new RangeError(`No level: ${level}`);
  if (!Number.isSafeInteger(position) || position < 0) throw new RangeError(`No position: ${position}`);
  if (hashes.length === 0 || (position % tileHashes) + hashes.length > tileHashes)
    throw new RangeError(`${hashes.length} hashes from position ${position} on are no part of a tile`);
  for (const hash of hashes) checkHash(hash);
}

/** Throws RangeError if this is no head of a log. */
export function checkSignedHead(origin: string, size: number, root: Uint8Array): void {
  checkOrigin(origin);
  if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`No size: ${size}`);
  checkHash(root);
}

function checkOrigin(origin: string): void {
  if (origin === '' || !isSortable(origin, originMaxBytes))
    throw new RangeError(`An origin has 1 to ${originMaxBytes} bytes of well-formed text without NUL`);
}

function checkHash(hash: Uint8Array): void {
  if (hash.length !== hashBytes) throw new RangeError(`A hash has ${hashBytes} bytes`);
}

function checkOrder(order: string): void {
  if (!isSortable(order, orderMaxBytes))
    throw new RangeError(`An order has at most ${orderMaxBytes} bytes of well-formed text without NUL`);
}

function isSortable(text: string, maxBytes: number): boolean {
  return !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= maxBytes;
}
