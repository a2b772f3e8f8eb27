import type { RecordStore } from '../../store/record-store.ts';

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
      const { next_seq } = JSON.parse(record.value) as { next_seq: number };
      return { version: record.version, nextSeq: next_seq };
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
