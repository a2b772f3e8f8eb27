import { count, parserOf } from '../../service/records/record-form.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';

/** How far the events of a ledger have been fanned out. */
export interface Cursor {
  /** Of the cursor's record; 'absent' if there is none. */
  readonly version: string;
  /** Every event before this seq has its delivery records. */
  readonly nextSeq: number;
}

export type Cursors = ReturnType<typeof cursorsIn>;

const kind = 'webhook_cursor';
const parseCursor = parserOf<{ next_seq: number }>({ next_seq: count });

export function cursorsIn(store: RecordStore) {
  return {
    /** null if there is none. */
    get: async (ledgerId: string): Promise<Cursor | null> => {
      const record = await store.get(kind, ledgerId);
      if (record === null) return null;
      const cursor = decodeOrPassOver(record, parseCursor);
      // A damaged cursor starts at the first event. Then no event is missed, and some are sent again.
      return { version: record.version, nextSeq: cursor?.next_seq ?? 0 };
    },
    /** null: another node has moved it. */
    move: async (ledgerId: string, cursor: Cursor, nextSeq: number): Promise<Cursor | null> => {
      const value = JSON.stringify({ next_seq: nextSeq });
      const put = await store.put({ kind, id: ledgerId, replaces: cursor.version, value, lookups: [] });
      return put.ok ? { version: put.version, nextSeq } : null;
    },
    remove: async (ledgerId: string): Promise<void> => {
      const record = await store.get(kind, ledgerId);
      if (record !== null) await store.remove(kind, ledgerId, record.version);
    },
  };
}
