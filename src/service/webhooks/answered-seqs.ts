import type { RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver, parseMembers } from '../../store/unreadable-record.ts';

/**
 * The seqs up to which recently written ledgers had answered when a subscription was created, by ledger id. Clocks of
 * nodes differ, and an event is dated before its answer, by as long as its append takes. So a subscription gets events
 * from some time before its creation on, without these.
 */
export type SeqsByLedger = Readonly<Record<string, number>>;

export interface AnsweredSeqs {
  /** The seq of one ledger. -1 if it is not known, or not stored any more. */
  of(subscriptionId: string, ledgerId: string): Promise<number>;
  /**
   * Stores the seqs of a subscription before it is created. If an earlier run of the same call has stored some, these
   * stay. `now` in milliseconds since 1970.
   */
  keep(subscriptionId: string, seqs: SeqsByLedger, now: number): Promise<void>;
}

const kind = 'webhook_start';
/**
 * The seqs are needed until the events from before the subscription are fanned out. A ledger that lags longer may
 * deliver some of these events.
 */
const keptMs = 60 * 60_000;

/** Stored in a record of their own: a subscription may have a thousand of them, and outlives their use. */
export function answeredSeqsIn(store: RecordStore): AnsweredSeqs {
  return {
    of: async (subscriptionId, ledgerId) => {
      const record = await store.get(kind, subscriptionId);
      const seqs = record === null ? undefined : decodeOrPassOver(record, parseMembers<SeqsByLedger>);
      const seq = seqs?.[ledgerId];
      return Number.isSafeInteger(seq) ? (seq as number) : -1;
    },
    keep: async (subscriptionId, seqs, now) => {
      const value = JSON.stringify(seqs);
      await store.put({ kind, id: subscriptionId, replaces: 'absent', value, lookups: [], expiresAt: now + keptMs });
    },
  };
}
