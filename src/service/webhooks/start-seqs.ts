import { names } from '../../domain/event/projection.ts';
import { linesOf, pageCharsMax } from '../../store/pages.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import { firstSeqAt, timeOf } from '../reading/event-bounds.ts';
import { parseLedgerLine } from '../reading/stored-lines.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { SeqsByLedger } from './answered-seqs.ts';
import type { WebhookWork } from './webhook-work.ts';

type AnsweredLately = Pick<WebhookWork, 'newestAnswered' | 'writtenLately'>;

/** Lines of an owner's list of ledgers that are read. If there may be more, the ledgers written last are added. */
const linesMax = 500;

/**
 * Returns the seqs up to which the owner's ledgers, or the named one, had answered. It runs before the subscription is
 * written: what is appended in between is delivered. The newest event in the log does not count, since it may be there
 * long before its answer. Of a ledger that is missing in the result, some earlier events may be delivered.
 */
export async function seqsToStartAfter(
  ledgers: BoundedLedgers,
  work: AnsweredLately,
  actorId: string,
  ledgerId: string | null,
): Promise<SeqsByLedger> {
  if (ledgerId === null) return ofOwner(ledgers, work, actorId);
  const seq = work.newestAnswered(ledgerId) ?? (await lastBeforeNewestCommit(ledgers, ledgerId));
  return seq === null ? {} : { [ledgerId]: seq };
}

async function ofOwner(ledgers: BoundedLedgers, work: AnsweredLately, actorId: string): Promise<SeqsByLedger> {
  const list = names.ledgersOf(actorId);
  const lines = await linesOf(ledgers, list, { limit: linesMax, descending: true });
  const ids = lines.flatMap(({ value }) => decodeOrPassOver(storedLine(list, value), parseLedgerLine)?.ledgerId ?? []);
  if (lines.length === linesMax) ids.push(...work.writtenLately(linesMax));
  const answered = ids.map((id) => [id, work.newestAnswered(id)] as const);
  return Object.fromEntries(answered.filter((entry): entry is [string, number] => entry[1] !== null));
}

/** If another node writes the ledger, its newest commit may not be answered yet. All earlier commits are. */
async function lastBeforeNewestCommit(ledgers: BoundedLedgers, ledgerId: string): Promise<number | null> {
  const head = await ledgers.head(ledgerId);
  if (head === null) return null;
  const [newest] = (await ledgers.read(ledgerId, head.seq, 1, pageCharsMax)).map(timeOf);
  if (newest === undefined || newest === null) return null;
  return (await firstSeqAt(ledgers, ledgerId, head.seq, (createdAt) => createdAt >= newest.createdAt)) - 1;
}
