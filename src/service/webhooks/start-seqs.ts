import { names } from '../../domain/projection.ts';
import { linesOf } from '../../store/line-pages.ts';
import { pageCharsMax } from '../../store/page-size.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import { firstSeqAt, timeOf } from '../reading/event-bounds.ts';
import { parseLedgerLine } from '../reading/stored-lines.ts';
import type { WalkedLedgers } from '../walked-stores.ts';
import type { SeqsByLedger } from './answered-seqs.ts';
import type { WebhookWork } from './webhook-work.ts';

/** Lines of an owner's ledgers that are looked at; where there are more, ledgers that were written to last, of whomever. */
const linesMax = 500;

/**
 * Up to which seq the owner's ledgers, or the one that is named, had answered when a subscription is made.
 *
 * It is read before the subscription is written, and so before its answer: an append in between has a later seq and is delivered. What
 * counts is what a ledger's own actor has answered and not what its log holds, since that may show an event long before its answer. Of a
 * ledger that is not told, the subscription may get what was answered just before it.
 */
export async function seqsToStartAfter(
  ledgers: WalkedLedgers,
  work: WebhookWork,
  actorId: string,
  ledgerId: string | null,
): Promise<SeqsByLedger> {
  if (ledgerId === null) return ofOwner(ledgers, work, actorId);
  const seq = work.newestAnswered(ledgerId) ?? (await lastBeforeNewestCommit(ledgers, ledgerId));
  return seq === null ? {} : { [ledgerId]: seq };
}

async function ofOwner(ledgers: WalkedLedgers, work: WebhookWork, actorId: string): Promise<SeqsByLedger> {
  const list = names.ledgersOf(actorId);
  const lines = await linesOf(ledgers, list, { limit: linesMax, descending: true });
  const ids = lines.flatMap(({ value }) => decodeOrPassOver(storedLine(list, value), parseLedgerLine)?.ledgerId ?? []);
  if (lines.length === linesMax) ids.push(...work.writtenLately(linesMax));
  const answered: Record<string, number> = {};
  for (const id of ids) {
    const seq = work.newestAnswered(id);
    if (seq !== null) answered[id] = seq;
  }
  return answered;
}

/** Of a ledger that another node writes, nobody here knows whether its newest commit is answered. All before it is over. */
async function lastBeforeNewestCommit(ledgers: WalkedLedgers, ledgerId: string): Promise<number | null> {
  const head = await ledgers.head(ledgerId);
  if (head === null) return null;
  const [newest] = (await ledgers.read(ledgerId, head.seq, 1, pageCharsMax)).map(timeOf);
  if (newest === undefined || newest === null) return null;
  return (await firstSeqAt(ledgers, ledgerId, head.seq, (createdAt) => createdAt >= newest.createdAt)) - 1;
}
