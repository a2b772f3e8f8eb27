import { setTimeout as delay } from 'node:timers/promises';
import { batchBytesMax, batchEventsMax } from '../../actors/bounds.ts';
import { LedgerError } from '../../domain/errors.ts';
import { commandKeyLifeMs, type LedgerEvent, type MasterLink } from '../../domain/event/event.ts';
import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { checkChain, type MasterEnd, masterEnd } from '../../domain/event/integrity.ts';
import { hasReadablePayload, names, type Projection, projectionsOf } from '../../domain/event/projection.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { Fenced, type Head, type LedgerEntry, type LedgerStore, OutcomeUnknown } from '../../store/ledger-store.ts';

/** Attempts for one ledger while the target does not answer. The pauses grow to two seconds: half a minute together. */
const attemptsMax = 20;
const pauseMaxMs = 2_000;
/** Masters of a ledger whose end is cached. */
const masterEndsMax = 10_000;

/** Something cannot be copied as it is. `message` is one sentence that says what to do. */
export class CopyRefused extends Error {
  override readonly name = 'CopyRefused';
}

interface LedgerCopyParts {
  readonly source: LedgerStore;
  readonly target: LedgerStore;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with how many more events are in the target, including those that were there before. */
  readonly copied: (events: number) => void;
}

/**
 * Copies a ledger with its projections, from the end of the target's log to `head`. Checks every hash and link, and
 * compares the target's newest event with the source's event at that seq.
 *
 * Throws CopyRefused for a ledger that is damaged, or of which the target has other events: at most a correct beginning
 * was written then. Throws LedgerError, OutcomeUnknown or Fenced if the target does not answer for long.
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
      await delay(Math.min(pauseMaxMs, 50 * 2 ** attempt));
    }
  }
}

async function attemptCopy(
  { source, target, now }: LedgerCopyParts,
  ledgerId: string,
  head: Head,
  reach: (count: number) => void,
): Promise<void> {
  const before = await target.head(ledgerId);
  await checkBeginning(source, target, ledgerId, head, before);
  if (before !== null && before.seq > head.seq) return reach(head.seq + 1);
  // Also completes the projections of the newest batch, if an earlier copy was interrupted.
  const claim = await target.claim(ledgerId);
  // A write of an earlier attempt may have landed just before the claim.
  await checkBeginning(source, target, ledgerId, head, claim.head);
  if (claim.head !== null && claim.head.seq > head.seq) return reach(head.seq + 1);
  const first = (claim.head?.seq ?? -1) + 1;
  reach(first);
  for await (const entries of checkedBatches(source, ledgerId, first, head, now)) {
    await target.append(claim, entries);
    reach((entries.at(-1)?.seq ?? head.seq) + 1);
  }
}

/** Throws CopyRefused unless the target has nothing of the ledger, a beginning of it, or all of it and more. */
async function checkBeginning(
  source: LedgerStore,
  target: LedgerStore,
  ledgerId: string,
  head: Head,
  targetHead: Head | null,
): Promise<void> {
  if (targetHead === null) return;
  const at = Math.min(targetHead.seq, head.seq);
  const theirs = targetHead.seq === at ? targetHead.hash : (await storedEventAt(target, ledgerId, at)).hash;
  const ours = head.seq === at ? head.hash : (await storedEventAt(source, ledgerId, at)).hash;
  if (theirs !== ours)
    throw new CopyRefused(
      `Ledger ${ledgerId} stands in the target with another event at seq ${at}, and is left as it is: find out which of the two is to be kept, and copy into another keyspace.`,
    );
}

/** Yields batches that fit one append. Throws CopyRefused if a hash or link is wrong, in the ledger or in a master. */
async function* checkedBatches(
  source: LedgerStore,
  ledgerId: string,
  first: number,
  head: Head,
  now: () => number,
): AsyncGenerator<LedgerEntry[]> {
  const masterEnds = new RecentMap<string, MasterEnd>(masterEndsMax);
  let before = first === 0 ? null : await storedEventAt(source, ledgerId, first - 1);
  let facts = first === 0 ? null : ledgerFacts(await storedEventAt(source, ledgerId, 0));
  for (let from = first; from <= head.seq; ) {
    const entries: LedgerEntry[] = [];
    let bytes = 0;
    const count = Math.min(batchEventsMax, head.seq - from + 1);
    for (const { seq, row } of await source.read(ledgerId, from, count, batchBytesMax)) {
      bytes += Buffer.byteLength(row);
      if (entries.length > 0 && bytes > batchBytesMax) break;
      const event = readEvent(ledgerId, seq, row);
      const { master } = event;
      if (master !== null) await lookUpEnd(source, event, master, masterEnds);
      const [issue] = checkChain([event], { kind: 'ledger', before, masterEnds });
      if (issue !== undefined) throw damaged(ledgerId, seq, issue.detail);
      if (!hasReadablePayload(event)) throw damaged(ledgerId, seq, 'its payload cannot be read');
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

/** Caches where the master of this event ended before it. Throws CopyRefused if the event before is missing. */
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
  const hasExpired = (projection: Projection) =>
    projection.kind === 'command' &&
    !projection.command.permanent &&
    Date.parse(event.createdAt) <= nowMs - commandKeyLifeMs;
  return { seq, prevHash, hash, row, projections: projectionsOf(event, facts).filter((made) => !hasExpired(made)) };
}

async function storedEventAt(store: LedgerStore, ledgerId: string, seq: number): Promise<LedgerEvent> {
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
