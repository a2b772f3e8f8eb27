/** Bounds on the texts that stores sort by, small enough for every store's keys, and the one order in which all of them sort. */

/** UTF-8 bytes of the `order` of a line or look-up: sort keys are times and ids, and LMDB keys end at 1,978 bytes. */
export const orderMaxBytes = 512;
/** UTF-8 bytes of a record's id, which is the last part of every look-up's key. */
export const recordIdMaxBytes = 1024;

/** Compares by UTF-8 bytes, as LMDB and Cassandra do; the `<` of strings differs beyond U+FFFF. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** RangeError where the text is no `order` that every store can sort by. */
export function checkOrder(order: string): void {
  if (!isSortable(order, orderMaxBytes))
    throw new RangeError(`An order has at most ${orderMaxBytes} bytes of well-formed text without NUL`);
}

/** RangeError where the text cannot be the id of a record. */
export function checkRecordId(id: string): void {
  if (id === '' || !isSortable(id, recordIdMaxBytes))
    throw new RangeError(`A record id has 1 to ${recordIdMaxBytes} bytes of well-formed text without NUL`);
}

function isSortable(text: string, maxBytes: number): boolean {
  return !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= maxBytes;
}
