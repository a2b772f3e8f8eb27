import type { RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { parserOf } from '../records/record-form.ts';

/**
 * The seqs up to which recently written ledgers had answered when a subscription was created, by ledger id. Clocks of
 * nodes differ, and an event is dated before its answer. So a subscription gets events from some time before its
 * creation on, without these.
 */
export type SeqsByLedger = Readonly<Record<string, number>>;

export type AnsweredSeqs = ReturnType<typeof answeredSeqsIn>;

const kind = 'webhook_start';
const parseSeqs = parserOf<SeqsByLedger>({});
/** If a ledger lags longer, some events from before the subscription may be delivered. */
const keptMs = 60 * 60_000;

/** Stored in a record of their own: a subscription may have a thousand of them, and outlives their use. */
export function answeredSeqsIn(store: RecordStore) {
  return {
    /** The seq of one ledger. -1 if it is not known, or not stored any more. */
    of: async (subscriptionId: string, ledgerId: string): Promise<number> => {
      const record = await store.get(kind, subscriptionId);
      const seqs = record === null ? undefined : decodeOrPassOver(record, parseSeqs);
      const seq = seqs?.[ledgerId];
      return Number.isSafeInteger(seq) ? (seq as number) : -1;
    },
    /** Stores the seqs, unless an earlier run of the same call has stored some. `now`: Unix time, ms. */
    keep: async (subscriptionId: string, seqs: SeqsByLedger, now: number): Promise<void> => {
      const value = JSON.stringify(seqs);
      await store.put({ kind, id: subscriptionId, replaces: 'absent', value, lookups: [], expiresAt: now + keptMs });
    },
  };
}
