import { setTimeout as delay } from 'node:timers/promises';
import type { AuthorityKeys, KeySource } from '../../client/verify/key-source.ts';
import { EventVerifier } from '../../client/verify/verifying.ts';
import { names } from '../../domain/event/projection.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { Head, LedgerStore } from '../../store/ledger-store.ts';
import type { ProjectionWriter, StoreInspection } from '../../store/store-inspection.ts';
import { eventsUpTo } from './events-up-to.ts';
import { type Finding, type FindingType, isBesideLog } from './finding.ts';
import { wrongPending } from './pending-scrub.ts';
import { type Expectations, ProjectionScrub } from './projection-scrub.ts';
import { SnapshotScrub } from './snapshot-scrub.ts';

/** If the newest batch of a ledger lacks projections, the ledger is read this often, `lookAgainMs` apart. */
const looksMax = 3;
const lookAgainMs = 1_000;
/** Milliseconds. The clocks of nodes differ by less. */
const clockSkewMs = 5 * 60_000;
/** Of findings of these types there may be several of one seq, which their details tell apart. */
const byDetail: ReadonlySet<FindingType> = new Set(['damaged_row', 'wrong_snapshot', 'wrong_writetime']);
/** Findings kept of one ledger. Further ones are only counted. */
const findingsMax = 100;

export interface ScrubParts {
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  readonly keys: KeySource;
  /** null: there are none, and seals are not checked. */
  readonly authorityKeys: AuthorityKeys | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /**
   * Writes the missing projections of earlier batches, if the log of the ledger is whole; a claim writes those of the
   * newest batch. null: the scrub writes nothing.
   */
  readonly finish: ProjectionWriter | null;
  readonly expectations: Expectations | null;
}

export interface LedgerScrub {
  readonly ledgerId: string;
  readonly events: number;
  readonly signatures: number;
  readonly findings: readonly Finding[];
  /** Includes the findings that were not kept. */
  readonly findingCount: number;
  /** What could not be checked, in words. */
  readonly unchecked: readonly string[];
  /** Projections of the newest batch that are not written yet. */
  readonly outstanding: number;
  /** Projections of earlier batches that were missing and were written. */
  readonly written: number;
}

interface Look extends Omit<LedgerScrub, 'written'> {
  /** The head up to which it was read. */
  readonly head: Head | null;
  /** Projections of earlier batches that are missing. */
  readonly missing: number;
  /** Every event is as it was written, and nothing is wrong with the end of the ledger. */
  readonly isWhole: boolean;
}

/**
 * Checks one ledger from what is stored:
 * - every row, hash and link, in the ledger and in its masters;
 * - actor signatures and seals, under the keys of their time;
 * - the end of the log, the projections and the snapshots.
 * A ledger that is written to meanwhile is checked up to its head at the beginning. Rejects with what the store throws.
 */
export async function scrubLedger(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  const { finish } = parts;
  const first = await settledLook(parts, ledgerId);
  if (finish === null || first.missing === 0 || !first.isWhole) return { ...first, written: 0 };
  await writeMissing(parts, finish, ledgerId, first.head);
  const second = await settledLook(parts, ledgerId);
  return { ...second, written: Math.max(0, first.missing - second.missing) };
}

async function settledLook(parts: ScrubParts, ledgerId: string): Promise<Look> {
  let found = await look(parts, ledgerId);
  for (let looks = 1; found.outstanding > 0 && looks < looksMax; looks++) {
    // A running writer writes them within a moment. A claim writes what a dead writer has left.
    if (parts.finish !== null && looks > 1) await parts.ledgers.claim(ledgerId);
    else await delay(lookAgainMs);
    found = await look(parts, ledgerId);
  }
  return found;
}

async function look(parts: ScrubParts, ledgerId: string): Promise<Look> {
  const { ledgers, inspection, keys, authorityKeys } = parts;
  const findings: Finding[] = [];
  const seen = new Set<string>();
  let findingCount = 0;
  let isWhole = true;
  const found = (finding: Finding) => {
    if (!isBesideLog(finding)) isWhole = false;
    const isByDetail = isBesideLog(finding) || byDetail.has(finding.type);
    const place = finding.type === 'wrong_writetime' ? finding.key : '';
    const key = JSON.stringify([finding.seq, finding.type, isByDetail ? finding.detail : '', place]);
    if (seen.has(key)) return;
    findingCount += 1;
    if (findings.length >= findingsMax) return;
    seen.add(key);
    findings.push(finding);
  };
  // In this order, so that every event with projections is at or before the head that is read next.
  const newest = await inspection.newestBatch(ledgerId);
  const head = await ledgers.head(ledgerId);
  const headSeq = head?.seq ?? -1;
  for await (const row of inspection.damagedRowsOf(ledgerId)) found({ ...row, ledgerId });
  const projections = new ProjectionScrub({
    ...parts,
    ledgerId,
    headSeq,
    // If the pending projections cannot be read, nothing will write them.
    projectedSeq: newest.pending === null ? headSeq : newest.projectedSeq,
    nowMs: parts.now(),
    found,
    missing: null,
  });
  const snapshots = new SnapshotScrub({ ledgers, ledgerId, headSeq, found });
  const take: ProjectionScrub['take'] = async (whole, ...window) => {
    await snapshots.take(whole);
    await projections.take(whole, ...window);
  };
  const events = eventsUpTo({ ledgers, inspection, ledgerId, head, projections: { take }, found });
  const latest = isoTime(parts.now() + clockSkewMs);
  const verifier = new EventVerifier({ keys, authorityKeys, trustedKeys: 'all', kind: 'ledger', latest });
  // Damaged events are left out, and what is missing is reported already.
  for await (const event of events)
    for (const { type, detail } of (await verifier.take(event)).issues)
      if (type !== 'missing_event') found({ ledgerId, seq: event.seq, type, detail });
  const verified = verifier.verification([]);
  // Nobody has signed the order of events behind the last seal and the last signed head. That is true of each ledger
  // that is written to, and nothing is lacking to check it. Signed heads are compared with the events elsewhere.
  const unchecked = verified.incomplete.filter(({ type }) => type !== 'order_unsigned');
  await projections.finish();
  snapshots.finish();
  for (const finding of await wrongPending(ledgers, ledgerId, head, newest)) found(finding);
  await checkEnd(ledgers, ledgerId, head, found);
  return {
    ledgerId,
    events: verified.checked.events,
    signatures: verified.checked.actorSignatures + verified.checked.authoritySeals,
    findings,
    findingCount,
    // An empty list is incomplete for a reader of an answer. Here the log itself was read to its end.
    unchecked: (verified.checked.events === 0 ? [] : unchecked).map(
      ({ detail, count }) => `${count} events: ${detail}`,
    ),
    outstanding: projections.outstanding,
    head,
    missing: projections.missing,
    isWhole: isWhole && unchecked.length === 0,
  };
}

/** Checks that there is no event after the head. If there is one, it was added, or the head was set back. */
async function checkEnd(
  ledgers: LedgerStore,
  ledgerId: string,
  head: Head | null,
  found: (finding: Finding) => void,
): Promise<void> {
  const end = head?.seq ?? -1;
  const [next] = await ledgers.read(ledgerId, end + 1, 1);
  if (next === undefined) {
    // A ledger without events may have been claimed and never written. A ledger whose name is stored had events.
    const isNamed = head === null && (await ledgers.cell(names.ledger(ledgerId))) !== null;
    const detail = 'the ledger is known by name, and all its events are gone';
    if (isNamed && (await ledgers.head(ledgerId)) === null) found({ ledgerId, seq: null, type: 'wrong_head', detail });
    return;
  }
  // The ledger may have grown meanwhile, so the head is read again.
  const now = await ledgers.head(ledgerId);
  const detail = `an event stands behind seq ${end}, where the ledger ends`;
  if (now === null || now.seq < next.seq) found({ ledgerId, seq: next.seq, type: 'wrong_head', detail });
}

/**
 * Writes the missing projections of a ledger that was just found whole, up to `head`. If an event is damaged by now,
 * nothing that follows from it or from later events is written.
 */
async function writeMissing(
  { ledgers, inspection, now }: ScrubParts,
  finish: ProjectionWriter,
  ledgerId: string,
  head: Head | null,
): Promise<void> {
  let isWhole = true;
  const found = (finding: Finding) => {
    if (!isBesideLog(finding)) isWhole = false;
  };
  const headSeq = head?.seq ?? -1;
  const projections = new ProjectionScrub({
    ledgerId,
    ledgers,
    inspection,
    headSeq,
    projectedSeq: headSeq,
    nowMs: now(),
    found,
    expectations: null,
    missing: async (missing) => {
      if (isWhole) await finish.write(ledgerId, missing);
    },
  });
  for await (const _ of eventsUpTo({ ledgers, inspection, ledgerId, head, projections, found }));
  await projections.finish();
}
