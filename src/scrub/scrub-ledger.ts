import type { Event } from '../client/event.ts';
import type { AuthorityKeys, KeySource } from '../client/key-source.ts';
import { verifyEvents } from '../client/verifying.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { checkChain, wrongHash } from '../domain/integrity.ts';
import { type LedgerFacts, ledgerFacts } from '../domain/ledger-facts.ts';
import { names } from '../domain/projection.ts';
import type { Head, LedgerStore } from '../store/ledger-store.ts';
import type { StoreInspection } from '../store/store-inspection.ts';
import type { Finding } from './finding.ts';
import { type Expectations, ProjectionScrub } from './projection-scrub.ts';
import { asRead, eventOf } from './scrubbed-event.ts';

/** Events read at once: as many as a bucket of Cassandra has. */
const windowEvents = 1_024;
/** How often a ledger is looked at whose newest batch lacks projections, and what lies between. */
const looksMax = 3;
const lookAgainMs = 1_000;
/** Findings kept of one ledger; the others are counted. */
const findingsMax = 100;

export interface ScrubParts {
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  readonly keys: KeySource;
  /** null: there are none, and seals stay unchecked. */
  readonly authorityKeys: AuthorityKeys | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Where a writer left projections of its newest batch unwritten, the ledger is claimed, which writes them. The one thing that a scrub ever writes. */
  readonly finish: boolean;
  /** See ProjectionScrub. */
  readonly expectations: Expectations | null;
}

/** What a scrub of one ledger came to. */
export interface LedgerScrub {
  readonly ledgerId: string;
  readonly events: number;
  readonly signatures: number;
  readonly findings: readonly Finding[];
  /** With those that were not kept. */
  readonly findingCount: number;
  /** What could not be checked, in words. */
  readonly unchecked: readonly string[];
  /** Projections of the newest batch that are still to come. */
  readonly outstanding: number;
}

/**
 * Checks one ledger from what is stored (decisions.md, section 6): every row, hash and link, in the ledger and in its masters, actor
 * signatures and seals under the keys as of then, where the log ends, and all that is looked up beside the log. A ledger that is written
 * to meanwhile is checked up to where it ended at the beginning.
 */
export async function scrubLedger(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  let scrub = await scrubOnce(parts, ledgerId);
  for (let looks = 1; scrub.outstanding > 0 && looks < looksMax; looks++) {
    // A writer that lives has written them in a moment; what one left that died is written by a claim.
    if (parts.finish && looks > 1) await parts.ledgers.claim(ledgerId);
    else await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
    scrub = await scrubOnce(parts, ledgerId);
  }
  return scrub;
}

async function scrubOnce(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  const { ledgers, inspection, keys, authorityKeys } = parts;
  const findings: Finding[] = [];
  const seen = new Set<string>();
  let findingCount = 0;
  const found = (finding: Finding) => {
    const key = JSON.stringify([
      finding.seq,
      finding.type,
      finding.type.startsWith('projection') ? finding.detail : '',
    ]);
    if (seen.has(key)) return;
    findingCount += 1;
    if (findings.length >= findingsMax) return;
    seen.add(key);
    findings.push(finding);
  };
  // In this order: what was projected by then belongs to events up to the head that is read next.
  const projectedSeq = await inspection.projectedSeq(ledgerId);
  const head = await ledgers.head(ledgerId);
  const projections = new ProjectionScrub({
    ...parts,
    ledgerId,
    headSeq: head?.seq ?? -1,
    projectedSeq,
    nowMs: parts.now(),
    found,
  });
  const seqs = new Map<string, number>();
  const verified = await verifyEvents(eventsUpTo(ledgers, ledgerId, head, projections, found, seqs), {
    keys,
    authorityKeys,
    kind: 'ledger',
  });
  // Damaged events were left out: what is missing was told already.
  for (const { eventId, type, detail } of verified.issues)
    if (type !== 'missing_event') found({ ledgerId, seq: seqs.get(eventId) ?? null, type, detail });
  await projections.finish();
  await checkEnd(ledgers, ledgerId, head, found);
  return {
    ledgerId,
    events: verified.checked.events,
    signatures: verified.checked.actorSignatures + verified.checked.authoritySeals,
    findings,
    findingCount,
    // That there is no event is for a reader to wonder at: here the log itself was looked at, and its end is checked above.
    unchecked: (verified.checked.events === 0 ? [] : verified.incomplete).map(
      ({ detail, count }) => `${count} events: ${detail}`,
    ),
    outstanding: projections.outstanding,
  };
}

/** The readable events up to the head, checked as they are stored, on their way to be verified as they are read. */
async function* eventsUpTo(
  ledgers: LedgerStore,
  ledgerId: string,
  head: Head | null,
  projections: ProjectionScrub,
  found: (finding: Finding) => void,
  seqs: Map<string, number>,
): AsyncIterable<Event> {
  let before: LedgerEvent | null = null;
  let facts: LedgerFacts | null = null;
  const end = head?.seq ?? -1;
  for (let from = 0; from <= end; from += windowEvents) {
    const to = Math.min(from + windowEvents, end + 1);
    const events: LedgerEvent[] = [];
    for (const entry of await ledgers.read(ledgerId, from, to - from)) {
      if (entry.seq >= to) break;
      const event = eventOf(ledgerId, entry);
      if ('type' in event) found(event);
      else events.push(event);
    }
    seqs.clear();
    for (const event of events) seqs.set(event.id, event.seq);
    for (const { eventId, type, detail } of checkChain(events, { kind: 'ledger', before }))
      found({ ledgerId, seq: seqs.get(eventId) ?? null, type, detail });
    const whole = events.filter((event) => wrongHash(event) === null);
    const [first] = whole;
    if (first?.seq === 0) facts = ledgerFacts(first);
    await projections.take(whole, facts, from, to);
    for (const event of whole) {
      const read = asRead(event);
      if (read !== null) yield read;
    }
    before = events.at(-1) ?? before;
  }
  const wrongEnd = (detail: string) => found({ ledgerId, seq: end, type: 'wrong_head', detail });
  if (head !== null && before?.seq !== head.seq) wrongEnd('the event that the ledger ends in is missing or damaged');
  else if (head !== null && before?.hash !== head.hash)
    wrongEnd('the newest event is not the one that the store says it is');
}

/** Nothing stands behind the head: an event there was added, or the head was set back. */
async function checkEnd(
  ledgers: LedgerStore,
  ledgerId: string,
  head: Head | null,
  found: (finding: Finding) => void,
): Promise<void> {
  const end = head?.seq ?? -1;
  const [next] = await ledgers.read(ledgerId, end + 1, 1);
  if (next === undefined) {
    // Without any event it might have been a claim that never came to write; one that is known by name had some.
    const isNamed = head === null && (await ledgers.cell(names.ledger(ledgerId))) !== null;
    if (isNamed && (await ledgers.head(ledgerId)) === null)
      found({
        ledgerId,
        seq: null,
        type: 'wrong_head',
        detail: 'the ledger is known by name, and all its events are gone',
      });
    return;
  }
  // Or the ledger has grown meanwhile.
  const now = await ledgers.head(ledgerId);
  if (now === null || now.seq < next.seq)
    found({
      ledgerId,
      seq: next.seq,
      type: 'wrong_head',
      detail: `an event stands behind seq ${end}, where the ledger ends`,
    });
}
