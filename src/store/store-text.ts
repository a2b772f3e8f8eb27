/**
 * Limits on texts that are parts of sort keys, small enough for every store, and the order in which all stores sort.
 */

/** Most UTF-8 bytes in the `order` of a line or look-up: times and ids. An LMDB key has at most 1,978 bytes. */
export const orderMaxBytes = 512;
/** Most UTF-8 bytes in a record's id, which is the last part of each look-up key. */
export const recordIdMaxBytes = 1024;
/** Most UTF-8 bytes in the origin of a log. */
export const originMaxBytes = 1024;

/** Compares by UTF-8 bytes, as LMDB and Cassandra do. The `<` of strings differs for characters above U+FFFF. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
