import type { RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver, parseMembers } from '../../store/unreadable-record.ts';

/**
 * Up to which seq ledgers had answered when a subscription was made, of those written to lately; by ledger id. Clocks of nodes differ, and an
 * event is dated as long before its answer as its append takes, so events are taken from that long before the subscription on, but for these.
 */
export type SeqsByLedger = Readonly<Record<string, number>>;

export interface AnsweredSeqs {
  /** Of one ledger; -1 where it is not known, or not any more. */
  of(subscriptionId: string, ledgerId: string): Promise<number>;
  /** Keeps those of a subscription that is about to be made; what an earlier run of the same call has kept stays. `now`: ms since 1970. */
  keep(subscriptionId: string, seqs: SeqsByLedger, now: number): Promise<void>;
}

const kind = 'webhook_start';
/** They matter until what was written before the subscription has been fanned out. A ledger that is behind for longer may bring some of it. */
const keptMs = 60 * 60_000;

/** A record of their own: there may be a thousand of a subscription, which stays long after they are of use. */
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
