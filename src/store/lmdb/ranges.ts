import { afterPrefix } from './keys.ts';
import type { BytesTable, TextTable } from './tables.ts';

/** Which part of the keys that start with a prefix is read. No key is the prefix alone. */
export interface KeyRange {
  readonly prefix: Buffer;
  /** A whole key to start at, in the direction of reading; default: the end that reading starts from. */
  readonly from?: Buffer | undefined;
  /** Start behind `from` even where that key exists. */
  readonly behindFrom?: boolean;
  readonly limit: number;
  readonly offset?: number | undefined;
  readonly descending?: boolean | undefined;
}

/** The keys of a range, in the order of reading. Values are not touched; an offset is counted off inside LMDB. */
export function keysIn(table: BytesTable | TextTable, range: KeyRange): Uint8Array[] {
  return Array.from(table.getKeys(bounds(range)));
}

/** The same with the values; it ends behind the one with which they have at least `charsMax` characters. */
export function entriesIn(
  table: TextTable,
  range: KeyRange,
  charsMax = Number.POSITIVE_INFINITY,
): { readonly key: Uint8Array; readonly value: string }[] {
  const found: { readonly key: Uint8Array; readonly value: string }[] = [];
  let chars = 0;
  for (const entry of table.getRange(bounds(range))) {
    found.push(entry);
    chars += entry.value.length;
    if (chars >= charsMax) break;
  }
  return found;
}

function bounds(range: KeyRange) {
  const { prefix, from, limit, offset = 0, descending = false } = range;
  const after = afterPrefix(prefix);
  return {
    start: from ?? (descending ? after : prefix),
    end: descending ? prefix : after,
    exclusiveStart: range.behindFrom === true || from === undefined,
    reverse: descending,
    limit,
    offset,
  };
}
