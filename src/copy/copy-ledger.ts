import { batchBytesMax, batchEventsMax } from '../actors/bounds.ts';
import { LedgerError } from '../domain/errors.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { checkChain } from '../domain/integrity.ts';
import { type LedgerFacts, ledgerFacts } from '../domain/ledger-facts.ts';
import { type Projection, projectionsOf } from '../domain/projection.ts';
import { CorruptRow, parseRow } from '../domain/row.ts';
import { Fenced, type Head, type LedgerEntry, type LedgerStore, OutcomeUnknown } from '../store/ledger-store.ts';
import { CopyRefused } from './refusal.ts';

/** Tries of one ledger while the target does not answer, with pauses that grow to two seconds: half a minute. */
const attemptsMax = 20;
const pauseMaxMs = 2_000;
/** For so long a mark that is not permanent counts (decisions.md, section 1). */
const markLifeMs = 24 * 60 * 60_000;

export interface LedgerCopyParts {
  readonly source: LedgerStore;
  readonly target: LedgerStore;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Told of events that are in the target now, those that were there before too. */
  readonly copied: (events: number) => void;
}

/**
 * Copies a ledger with its projections, from where the target ends to `head`. Every hash and link is checked on the way, and the target's end
 * against the source's event at that place. Throws CopyRefused for a ledger that is damaged, or that stands in the target with
 * other events; nothing of it was written then, or what was is a true beginning. LedgerError where the target does not answer for long.
 */
export async function copyLedger(parts: LedgerCopyParts, ledgerId: string, head: Head): Promise<void> {
  let reported = 0;
  const reach = (count: number) => {
    if (count > reported) parts.copied(count - reported);
    reported = Math.max(reported, count);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptCopy(parts, ledgerId, head, reach);
    } catch (error) {
      const mayPass = error instanceof OutcomeUnknown || error instanceof Fenced || error instanceof LedgerError;
      if (!mayPass || attempt === attemptsMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMaxMs, 50 * 2 ** attempt)));
    }
  }
}

async function attemptCopy(
  { source, target, now }: LedgerCopyParts,
  ledgerId: string,
  head: Head,
  reach: (count: number) => void,
): Promise<void> {
  const standing = await target.head(ledgerId);
  await checkStanding(source, target, ledgerId, head, standing);
  if (standing !== null && standing.seq > head.seq) return reach(head.seq + 1);
  // Also completes the projections of the newest batch, should the copy have been broken off before.
  const claim = await target.claim(ledgerId);
  // What an earlier attempt had sent may have landed just before.
  await checkStanding(source, target, ledgerId, head, claim.head);
  if (claim.head !== null && claim.head.seq > head.seq) return reach(head.seq + 1);
  const first = (claim.head?.seq ?? -1) + 1;
  reach(first);
  let before = first === 0 ? null : await eventAt(source, ledgerId, first - 1);
  let facts = first === 0 ? null : ledgerFacts(await eventAt(source, ledgerId, 0));
  for (let from = first; from <= head.seq; ) {
    const entries = await readBatch(source, ledgerId, from, head, before, facts, now());
    await target.append(
      claim,
      entries.map(({ entry }) => entry),
    );
    const last = entries.at(-1)?.event;
    if (last === undefined) throw damaged(ledgerId, from, 'the event is missing');
    facts ??= ledgerFacts(entries[0]?.event ?? last);
    before = last;
    from = last.seq + 1;
    reach(from);
  }
}

/** CopyRefused unless the target has nothing of the ledger but a beginning of it, or all of it and more. */
async function checkStanding(
  source: LedgerStore,
  target: LedgerStore,
  ledgerId: string,
  head: Head,
  standing: Head | null,
): Promise<void> {
  if (standing === null) return;
  const at = Math.min(standing.seq, head.seq);
  const theirs = standing.seq === at ? standing.hash : (await eventAt(target, ledgerId, at)).hash;
  const ours = head.seq === at ? head.hash : (await eventAt(source, ledgerId, at)).hash;
  if (theirs !== ours)
    throw new CopyRefused(
      `Ledger ${ledgerId} stands in the target with another event at seq ${at}, and is left as it is: find out which of the two is to be kept, and copy into another keyspace.`,
    );
}

interface CheckedEntry {
  readonly event: LedgerEvent;
  readonly entry: LedgerEntry;
}

/** The next entries, as many as go into one append, each hash and link checked. */
async function readBatch(
  source: LedgerStore,
  ledgerId: string,
  from: number,
  head: Head,
  before: LedgerEvent | null,
  facts: LedgerFacts | null,
  nowMs: number,
): Promise<CheckedEntry[]> {
  const rows = await source.read(ledgerId, from, Math.min(batchEventsMax, head.seq - from + 1));
  const entries: CheckedEntry[] = [];
  let bytes = 0;
  let previous = before;
  let known = facts;
  for (const { seq, row } of rows) {
    bytes += Buffer.byteLength(row);
    if (entries.length > 0 && bytes > batchBytesMax) break;
    const event = readEvent(ledgerId, seq, row);
    const [issue] = checkChain([event], { kind: 'ledger', before: previous });
    if (issue !== undefined) throw damaged(ledgerId, seq, issue.detail);
    if (seq === head.seq && event.hash !== head.hash)
      throw damaged(ledgerId, seq, 'it is not the one that the ledger ends in');
    const projections = projectionsOf(event, known).filter((projection) => counts(projection, event, nowMs));
    entries.push({ event, entry: { seq, prevHash: event.prevHash, hash: event.hash, row, projections } });
    known ??= ledgerFacts(event);
    previous = event;
  }
  if (entries.length === 0) throw damaged(ledgerId, from, 'the event is missing');
  return entries;
}

/** Marks that nobody looks for any more are not taken along. */
function counts(projection: Projection, event: LedgerEvent, nowMs: number): boolean {
  if (projection.kind !== 'command' || projection.command.permanent) return true;
  return Date.parse(event.createdAt) > nowMs - markLifeMs;
}

async function eventAt(store: LedgerStore, ledgerId: string, seq: number): Promise<LedgerEvent> {
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
