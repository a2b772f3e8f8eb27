import { batchBytesMax, batchEventsMax } from '../../actors/bounds.ts';
import { LedgerError } from '../../domain/errors.ts';
import { commandKeyLifeMs, type LedgerEvent, type MasterLink } from '../../domain/event/event.ts';
import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { checkChain, type MasterEnd, masterEnd } from '../../domain/event/integrity.ts';
import { names, type Projection, projectionsOf } from '../../domain/event/projection.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { Head, LedgerEntry, LedgerStore } from '../../store/ledger-store.ts';
import { CopyRefused } from './refusal.ts';

/** Masters of a ledger whose end is cached. The end of any other master is looked up. */
const masterEndsMax = 10_000;

interface CheckedBatchesParts {
  readonly source: LedgerStore;
  readonly ledgerId: string;
  /** The seq to begin at. */
  readonly first: number;
  /** The newest event of the ledger. */
  readonly head: Head;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Yields a ledger's entries from `first` through its head, in batches that fit one append. Checks every hash and every
 * link, in the ledger and in its masters. Throws CopyRefused if the ledger is damaged.
 */
export async function* checkedBatches(parts: CheckedBatchesParts): AsyncGenerator<LedgerEntry[]> {
  const { source, ledgerId, first, head, now } = parts;
  const masterEnds = new RecentMap<string, MasterEnd>(masterEndsMax);
  let before = first === 0 ? null : await eventAt(source, ledgerId, first - 1);
  let facts = first === 0 ? null : ledgerFacts(await eventAt(source, ledgerId, 0));
  for (let from = first; from <= head.seq; ) {
    const entries: LedgerEntry[] = [];
    let bytes = 0;
    for (const { seq, row } of await source.read(ledgerId, from, Math.min(batchEventsMax, head.seq - from + 1))) {
      bytes += Buffer.byteLength(row);
      if (entries.length > 0 && bytes > batchBytesMax) break;
      const event = readEvent(ledgerId, seq, row);
      const { master } = event;
      if (master !== null) await lookUpEnd(source, event, master, masterEnds);
      const [issue] = checkChain([event], { kind: 'ledger', before, masterEnds });
      if (issue !== undefined) throw damaged(ledgerId, seq, issue.detail);
      if (seq === head.seq && event.hash !== head.hash)
        throw damaged(ledgerId, seq, 'it is not the one that the ledger ends in');
      entries.push(entryOf(event, row, facts, now()));
      if (master !== null) masterEnds.set(master.id, masterEnd(event, master));
      facts ??= ledgerFacts(event);
      before = event;
    }
    if (entries.length === 0) throw damaged(ledgerId, from, 'the event is missing');
    yield entries;
    from += entries.length;
  }
}

/**
 * Puts into `masterEnds` where the master of this event ended before it, unless it is cached or the event is the
 * master's first. Throws CopyRefused if the event before is missing.
 */
async function lookUpEnd(
  source: LedgerStore,
  { ledgerId, seq }: LedgerEvent,
  { id, seq: masterSeq }: MasterLink,
  masterEnds: RecentMap<string, MasterEnd>,
): Promise<void> {
  if (masterEnds.get(id) !== undefined) return;
  const page = { from: seq - 1, limit: 1, descending: true };
  const [entry] = (await source.readScope(ledgerId, names.masterEvents(id), page)).entries;
  const event = entry === undefined ? null : readEvent(ledgerId, entry.seq, entry.row);
  if (event?.master?.id === id) masterEnds.set(id, masterEnd(event, event.master));
  else if (masterSeq > 0) throw damaged(ledgerId, seq, 'the event before it in its master is missing');
}

function entryOf(event: LedgerEvent, row: string, facts: LedgerFacts | null, nowMs: number): LedgerEntry {
  const { seq, prevHash, hash } = event;
  const projections = projectionsOf(event, facts).filter((projection) => counts(projection, event, nowMs));
  return { seq, prevHash, hash, row, projections };
}

/** Whether a projection is copied. Command keys that have expired are not. */
function counts(projection: Projection, event: LedgerEvent, nowMs: number): boolean {
  if (projection.kind !== 'command' || projection.command.permanent) return true;
  return Date.parse(event.createdAt) > nowMs - commandKeyLifeMs;
}

/** The event at a seq. Throws CopyRefused if it is missing or damaged. */
export async function eventAt(store: LedgerStore, ledgerId: string, seq: number): Promise<LedgerEvent> {
  const [entry] = await store.read(ledgerId, seq, 1);
  if (entry === undefined || entry.seq !== seq) throw damaged(ledgerId, seq, 'the event is missing');
  return readEvent(ledgerId, seq, entry.row);
}

function readEvent(ledgerId: string, seq: number, row: string): LedgerEvent {
  try {
    const event = parseRow(row);
    if (event.ledgerId === ledgerId && event.seq === seq) return event;
  } catch (error) {
    if (!(error instanceof CorruptRow) && !(error instanceof LedgerError)) throw error;
  }
  throw damaged(ledgerId, seq, 'what is stored there is not that event');
}

function damaged(ledgerId: string, seq: number, why: string): CopyRefused {
  return new CopyRefused(
    `Ledger ${ledgerId} is damaged at seq ${seq} (${why}), and was not copied from there on: restore it from a backup, and copy again.`,
  );
}
