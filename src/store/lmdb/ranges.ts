import { afterPrefix } from './keys.ts';
import type { BytesTable, TextTable } from './tables.ts';

/** Which of the keys that start with a prefix to read. Every key is longer than its prefix. */
interface KeyRange {
  readonly prefix: Buffer;
  /** A whole key to start at, in the direction of reading. Default: the first key in that direction. */
  readonly from?: Uint8Array | undefined;
  readonly behindFrom?: boolean;
  readonly limit: number;
  readonly offset?: number | undefined;
  readonly descending?: boolean | undefined;
}

/** Reads no values. LMDB itself skips the offset. */
export function keysIn(table: BytesTable | TextTable, range: KeyRange): Uint8Array[] {
  return Array.from(table.getKeys(bounds(range)));
}

export function entriesIn(
  table: TextTable,
  range: KeyRange,
  charsMax = Number.POSITIVE_INFINITY,
): { readonly key: Uint8Array; readonly value: string }[] {
  const found = [];
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
