/**
 * Limits on texts that are parts of sort keys, small enough for every store, and the order in which all stores sort.
 */

/**
 * Most UTF-8 bytes in the `order` of a line or look-up. Orders are times and ids; an LMDB key has at most 1,978 bytes.
 */
export const orderMaxBytes = 512;
/** Most UTF-8 bytes in a record's id, which is the last part of each look-up key. */
export const recordIdMaxBytes = 1024;

/** Compares by UTF-8 bytes, as LMDB and Cassandra do. The `<` of strings differs for characters above U+FFFF. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Throws RangeError unless every store can sort by this text. */
export function checkOrder(order: string): void {
  if (!isSortable(order, orderMaxBytes))
    throw new RangeError(`An order has at most ${orderMaxBytes} bytes of well-formed text without NUL`);
}

/** Throws RangeError unless the text can be the id of a record. */
export function checkRecordId(id: string): void {
  if (id === '' || !isSortable(id, recordIdMaxBytes))
    throw new RangeError(`A record id has 1 to ${recordIdMaxBytes} bytes of well-formed text without NUL`);
}

function isSortable(text: string, maxBytes: number): boolean {
  return !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= maxBytes;
}
