import { firstSeqAt, timeOf } from '../../service/reading/event-bounds.ts';
import type { AnsweredSeqs } from '../../service/webhooks/answered-seqs.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Cursor, Cursors } from './cursor-record.ts';
import { takesFrom } from './subscription-start.ts';

/**
 * A cursor farther behind than this may be from a subscription that ended long ago: the start is then searched by time.
 */
const seekBeyondEvents = 256;

export interface CursorStart {
  /** null if no event can be for any of the ledger's subscriptions. */
  readonly cursor: Cursor | null;
  readonly isStored: boolean;
}

interface CursorStartParts {
  readonly ledgers: LedgerStore;
  readonly cursors: Cursors;
  readonly answeredSeqs: Pick<AnsweredSeqs, 'of'>;
}

/**
 * Finds where to start tailing a ledger whose cursor is not in memory. Without a stored cursor, this is the first event
 * that may have been answered after the oldest of its subscriptions was made. The first `rangeEventsMax` events after a
 * stored cursor may have delivery records already.
 */
export async function cursorToStartAt(
  { ledgers, cursors, answeredSeqs }: CursorStartParts,
  ledgerId: string,
  subscriptions: readonly SubscriptionRecord[],
  rangeEventsMax: number,
): Promise<CursorStart> {
  const head = await ledgers.head(ledgerId);
  if (head === null) return nowhere;
  const stored = await cursors.get(ledgerId);
  if (stored !== null && head.seq - stored.nextSeq <= seekBeyondEvents) return { cursor: stored, isStored: true };
  const from = subscriptions.map(takesFrom).sort()[0];
  if (from === undefined) return nowhere;
  // A range that was recorded before a crash begins at the stored cursor, and is found from there only. So tailing
  // starts there or behind the range, never in its middle.
  const low = stored === null ? 0 : stored.nextSeq + rangeEventsMax;
  const dated = await firstSeqFrom(ledgers, ledgerId, low, head.seq, from);
  const found =
    dated > head.seq ? dated : Math.max(dated, await firstUnanswered(answeredSeqs, ledgerId, subscriptions));
  const first = stored !== null && found === low ? stored.nextSeq : found;
  if (stored === null && first > head.seq) return nowhere;
  return { cursor: { version: stored?.version ?? 'absent', nextSeq: first }, isStored: first === stored?.nextSeq };
}

const nowhere: CursorStart = { cursor: null, isStored: false };

/** The first seq that was not answered before all of the subscriptions. 0 if that is not known for one of them. */
async function firstUnanswered(
  answeredSeqs: Pick<AnsweredSeqs, 'of'>,
  ledgerId: string,
  subscriptions: readonly SubscriptionRecord[],
): Promise<number> {
  let first = Number.POSITIVE_INFINITY;
  for (const { id } of subscriptions) {
    first = Math.min(first, (await answeredSeqs.of(id, ledgerId)) + 1);
    if (first === 0) break;
  }
  return first;
}

/** The first seq from `low` on that is not dated before `from` (ISO); `headSeq` + 1 if there is none. */
async function firstSeqFrom(ledgers: LedgerStore, ledgerId: string, low: number, headSeq: number, from: string) {
  // If the ledger was at rest since `from`, this is the only read.
  const [newest] = await ledgers.read(ledgerId, headSeq, 1);
  const time = newest === undefined ? null : timeOf(newest);
  if (time !== null && time.createdAt < from) return headSeq + 1;
  return firstSeqAt(ledgers, ledgerId, headSeq, (createdAt) => createdAt >= from, low);
}
