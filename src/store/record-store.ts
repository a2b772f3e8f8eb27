/** A versioned record. `value` is JSON text. */
export interface StoredRecord {
  readonly kind: string;
  readonly id: string;
  /** Opaque; changes with every put and is never used again for that id, not even after a removal. */
  readonly version: string;
  readonly value: string;
}

/**
 * How a record is found otherwise than by its id: all records with this `value` under `name`, sorted by `order`, then
 * id, both by their UTF-8 bytes. A record stands once under a (name, value): with two orders it would be found twice.
 */
export interface Lookup {
  readonly name: string;
  readonly value: string;
  /** Sort key, usually the creation time. No NUL, at most orderMaxBytes (store-text.ts). */
  readonly order: string;
}

export interface RecordWrite {
  readonly kind: string;
  /** Not empty, no NUL, at most recordIdMaxBytes (store-text.ts). */
  readonly id: string;
  /** The version that this write replaces, or 'absent' where there must be none. */
  readonly replaces: string;
  readonly value: string;
  readonly lookups: readonly Lookup[];
  /** Milliseconds since 1970; from then on the record may be swept. Readers check the time themselves. */
  readonly expiresAt?: number;
}

export type PutResult =
  | { readonly ok: true; readonly version: string }
  /** Nothing was written; `current` is what stands there (null: nothing). */
  | { readonly ok: false; readonly current: StoredRecord | null };

export interface FindPage {
  readonly limit: number;
  readonly offset?: number;
  readonly descending?: boolean;
  /** Start strictly behind this (order, id), in the direction of reading. */
  readonly after?: { readonly order: string; readonly id: string };
  /** The page ends at the record with which its values have so many characters, or soon behind it. Such a page may be followed by another. */
  readonly charsMax?: number;
}

export interface Swept {
  /** How many records. */
  readonly removed: number;
  /** When the oldest of those that are left expired, or earlier (ms since 1970). null: none is left that was there when it began. */
  readonly oldestLeft: number | null;
}

export interface FoundRecord extends StoredRecord {
  readonly order: string;
}

/**
 * Everything that is not chain: actors with their keys, API keys, organizations, entities, idempotency claims,
 * subscriptions, deliveries, cursors. Each record stands alone; there is no transaction over several.
 *
 * A put that resolved is durable and found by `get` and by every look-up at once, on every node. An unknown outcome is
 * settled inside, if that can be had: otherwise put and remove throw LedgerError `outcome_unknown`, and the write may have
 * landed or may land yet (put again with the same replaced version to find out). Thrown as `unavailable` or `overloaded`
 * nothing was written. An id or order beyond its limit is a mistake of the caller's on a write (RangeError), and simply
 * not found on a read.
 */
export interface RecordStore {
  get(kind: string, id: string): Promise<StoredRecord | null>;
  put(write: RecordWrite): Promise<PutResult>;
  /** True if that version stood there and is gone now, with its look-ups. */
  remove(kind: string, id: string, version: string): Promise<boolean>;
  /** In the order of (order, id). `offset` skips records from where reading starts. */
  find(kind: string, lookup: { readonly name: string; readonly value: string }, page: FindPage): Promise<FoundRecord[]>;
  /** Removes up to `limit` records that expired before `now` (ms since 1970), the oldest first. */
  sweep(now: number, limit: number): Promise<Swept>;
}
