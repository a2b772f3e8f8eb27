import type { Database } from 'lmdb';
import { afterPrefix } from './keys.ts';
import type { BytesTable, TextTable } from './tables.ts';

const pageEntries = 500;

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

/** Yields a whole table, read in pages. So no cursor is open while the consumer does something else. */
export function* allEntries<V>(
  table: Database<V, Uint8Array>,
): Iterable<{ readonly key: Uint8Array; readonly value: V }> {
  for (let start: Buffer | undefined; ; ) {
    const behind = start === undefined ? {} : { start, exclusiveStart: true };
    const page = Array.from(table.getRange({ ...behind, limit: pageEntries }));
    // Copied, because LMDB reuses the memory of a key.
    yield* page.map(({ key, value }) => ({ key: Uint8Array.from(key), value }));
    const last = page.at(-1);
    if (last === undefined || page.length < pageEntries) return;
    start = Buffer.from(last.key);
  }
}
