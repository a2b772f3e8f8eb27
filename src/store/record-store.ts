import { LedgerError } from '../domain/errors.ts';
import type { Page } from './ledger-store.ts';

/** A versioned record. `value` is JSON text. */
export interface StoredRecord {
  readonly kind: string;
  readonly id: string;
  /**
   * Opaque. Every put makes a new version, random or counted up: one is never used again for the id, even after a
   * removal.
   */
  readonly version: string;
  readonly value: string;
}

/**
 * A secondary index entry of a record. A look-up finds all records with this `value` under `name`, sorted by `order`,
 * then by id, both compared by their UTF-8 bytes. A record may have a (name, value) once: with two orders it would be
 * found twice.
 */
export interface Lookup {
  readonly name: string;
  readonly value: string;
  /** Sort key, usually the creation time. Without NUL, at most orderMaxBytes (store-text.ts). */
  readonly order: string;
}

export type LookupName = Pick<Lookup, 'name' | 'value'>;

export interface RecordWrite {
  readonly kind: string;
  /** Not empty, without NUL, at most recordIdMaxBytes (store-text.ts). */
  readonly id: string;
  /** The version that this write replaces, or 'absent' if there must be no record. */
  readonly replaces: string;
  readonly value: string;
  /** All of them. Those that stay the same are not written again. */
  readonly lookups: readonly Lookup[];
  /** Milliseconds since 1970. From then on a sweep may remove the record. Readers check the time themselves. */
  readonly expiresAt?: number;
}

export type PutResult =
  | { readonly ok: true; readonly version: string }
  /** Nothing was written, because the version is another. `current` is the present record, null if there is none. */
  | { readonly ok: false; readonly current: StoredRecord | null };

export interface FindPage extends Omit<Page, 'from'> {
  /** The page starts after this (order, id), in the direction of reading, without it. */
  readonly after?: { readonly order: string; readonly id: string };
  /** The page ends before this order. Not with `descending`. */
  readonly before?: string;
}

export interface Swept {
  readonly removed: number;
  /**
   * Since when the oldest record that is left has been expired, or an earlier time (ms since 1970). null if all records
   * are gone that had expired when the sweep began. Damaged records are passed over and do not count.
   */
  readonly oldestLeft: number | null;
}

export interface FoundRecord extends StoredRecord {
  readonly order: string;
}

/**
 * Everything outside the ledgers' chains: actors with their keys, API keys, organizations, entities, idempotency
 * claims, subscriptions, deliveries, cursors. There are no transactions over several records.
 *
 * When a put resolves, the record is durable, and `get` and every look-up on every node find it. The store tries to
 * settle an unknown outcome itself. If it cannot, put and remove throw LedgerError `outcome_unknown`: the write may
 * have landed or may still land, and another put that replaces the same version finds out. After `unavailable` or
 * `overloaded` nothing was written. A write with an id or order beyond its limit throws RangeError; a read with one
 * finds nothing.
 */
export interface RecordStore {
  /** Returns null if there is no such record. */
  get(kind: string, id: string): Promise<StoredRecord | null>;
  put(write: RecordWrite): Promise<PutResult>;
  /** Removes the record and its look-ups if it still has this version. Returns whether it did. */
  remove(kind: string, id: string, version: string): Promise<boolean>;
  /**
   * Returns records in the order of (order, id). `offset` skips records from where reading starts. May throw
   * TooManyDeleted.
   */
  find(kind: string, lookup: LookupName, page: FindPage): Promise<FoundRecord[]>;
  /** Removes up to `limit` records that expired before `now` (ms since 1970), the oldest first. */
  sweep(now: number, limit: number): Promise<Swept>;
}

/** What a page would search holds too many deleted rows. A part of it (`before`) may not. */
export class TooManyDeleted extends LedgerError {
  constructor(cause: unknown) {
    super('unavailable', 'The store cannot read this list now.', {}, cause);
    this.name = 'TooManyDeleted';
  }
}

/** The error of a put or removal that may or may not have been written. */
export function writeUnknown(cause?: unknown): LedgerError {
  return new LedgerError(
    'outcome_unknown',
    'The store did not say whether this was written: retry with the same Idempotency-Key to learn which.',
    {},
    cause,
  );
}
