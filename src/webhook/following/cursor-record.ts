import type { RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver, parseMembers } from '../../store/unreadable-record.ts';

/** How far the events of a ledger have been fanned out. */
export interface Cursor {
  /** Version of the record that holds it; 'absent' where none does yet. */
  readonly version: string;
  /** Every event before this seq has its delivery records. */
  readonly nextSeq: number;
}

export interface Cursors {
  get(ledgerId: string): Promise<Cursor | null>;
  /** The cursor as moved; null if somebody else has moved it. */
  move(ledgerId: string, cursor: Cursor, nextSeq: number): Promise<Cursor | null>;
  remove(ledgerId: string): Promise<void>;
}

const kind = 'webhook_cursor';

/** One durable cursor a ledger, for ledgers that some subscription watches. */
export function cursorsIn(store: RecordStore): Cursors {
  return {
    get: async (ledgerId) => {
      const record = await store.get(kind, ledgerId);
      if (record === null) return null;
      const cursor = decodeOrPassOver(record, (value) =>
        parseMembers<{ next_seq: number }>(value, { next_seq: 'count' }),
      );
      // Of a damaged one nothing is known: from the beginning on nothing is missed, and some is sent again.
      return { version: record.version, nextSeq: cursor?.next_seq ?? 0 };
    },
    move: async (ledgerId, cursor, nextSeq) => {
      const value = JSON.stringify({ next_seq: nextSeq });
      const put = await store.put({ kind, id: ledgerId, replaces: cursor.version, value, lookups: [] });
      return put.ok ? { version: put.version, nextSeq } : null;
    },
    remove: async (ledgerId) => {
      const record = await store.get(kind, ledgerId);
      if (record !== null) await store.remove(kind, ledgerId, record.version);
    },
  };
}
