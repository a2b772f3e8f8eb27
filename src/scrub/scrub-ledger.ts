import type { AuthorityKeys, KeySource } from '../client/key-source.ts';
import { verifyEvents } from '../client/verifying.ts';
import { names } from '../domain/projection.ts';
import { isoTime } from '../domain/time.ts';
import type { Head, LedgerStore } from '../store/ledger-store.ts';
import type { ProjectionWriter } from '../store/projection-writer.ts';
import type { StoreInspection } from '../store/store-inspection.ts';
import { eventsUpTo } from './events-up-to.ts';
import type { Expectations } from './expectations.ts';
import { type Finding, isOfProjections } from './finding.ts';
import { wrongPending } from './pending-scrub.ts';
import { ProjectionScrub } from './projection-scrub.ts';
import { SnapshotScrub } from './snapshot-scrub.ts';
import { writeMissing } from './write-missing.ts';

/** How often a ledger is looked at whose newest batch lacks projections, and what lies between. */
const looksMax = 3;
const lookAgainMs = 1_000;
/** Clocks of nodes differ by less: an event dated later than this from now was not dated by one of them. */
const clockSkewMs = 5 * 60_000;
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
  /**
   * Where projections are missing they are written: those of the newest batch by a claim of the ledger, all others by this, of ledgers
   * that are whole. The one thing that a scrub ever writes. null: it writes nothing.
   */
  readonly finish: ProjectionWriter | null;
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
  /** Projections of earlier batches that were missing and were written. */
  readonly written: number;
}

/** How a ledger was found. */
interface Look extends Omit<LedgerScrub, 'written'> {
  /** Where it ended. */
  readonly head: Head | null;
  /** Projections of earlier batches that are missing. */
  readonly missing: number;
  /** Every event was found as it was written, and nothing is wrong with where the ledger ends. */
  readonly isWhole: boolean;
}

/**
 * Checks one ledger from what is stored (decisions.md, section 6): every row, hash and link, in the ledger and in its masters, actor
 * signatures and seals under the keys as of then, where the log ends, and all that is looked up beside the log. A ledger that is written
 * to meanwhile is checked up to where it ended at the beginning.
 */
export async function scrubLedger(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  const { finish } = parts;
  const first = await settledLook(parts, ledgerId);
  if (finish === null || first.missing === 0 || !first.isWhole) return { ...first, written: 0 };
  await writeMissing({ ...parts, finish }, ledgerId, first.head);
  const second = await settledLook(parts, ledgerId);
  return { ...second, written: Math.max(0, first.missing - second.missing) };
}

/** Looks again, a few times, where the newest batch lacks projections. */
async function settledLook(parts: ScrubParts, ledgerId: string): Promise<Look> {
  let found = await look(parts, ledgerId);
  for (let looks = 1; found.outstanding > 0 && looks < looksMax; looks++) {
    // A writer that lives has written them in a moment; what one left that died is written by a claim.
    if (parts.finish !== null && looks > 1) await parts.ledgers.claim(ledgerId);
    else await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
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
    if (!isOfProjections(finding)) isWhole = false;
    const isByDetail = isOfProjections(finding) || finding.type === 'damaged_row' || finding.type === 'wrong_snapshot';
    const key = JSON.stringify([finding.seq, finding.type, isByDetail ? finding.detail : '']);
    if (seen.has(key)) return;
    findingCount += 1;
    if (findings.length >= findingsMax) return;
    seen.add(key);
    findings.push(finding);
  };
  // In this order: what was projected by then belongs to events up to the head that is read next.
  const newest = await inspection.newestBatch(ledgerId);
  const head = await ledgers.head(ledgerId);
  const headSeq = head?.seq ?? -1;
  for await (const row of inspection.damagedRowsOf(ledgerId)) found({ ...row, ledgerId, type: 'damaged_row' });
  const projections = new ProjectionScrub({
    ...parts,
    ledgerId,
    headSeq,
    // Where it cannot be read what is still to come, nobody completes it.
    projectedSeq: newest.pending === null ? headSeq : newest.projectedSeq,
    nowMs: parts.now(),
    found,
    missing: null,
  });
  const seqs = new Map<string, number>();
  const snapshots = new SnapshotScrub({ ledgers, ledgerId, headSeq, found });
  const take: ProjectionScrub['take'] = async (whole, ...window) => {
    await snapshots.take(whole);
    await projections.take(whole, ...window);
  };
  const events = eventsUpTo({ ledgers, inspection, ledgerId, head, projections: { take }, found, seqs });
  const latest = isoTime(parts.now() + clockSkewMs);
  const verified = await verifyEvents(events, { keys, authorityKeys, trustedKeys: 'all', kind: 'ledger', latest });
  // Damaged events were left out: what is missing was told already.
  for (const { eventId, type, detail } of verified.issues)
    if (type !== 'missing_event') found({ ledgerId, seq: seqs.get(eventId) ?? null, type, detail });
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
    // That there is no event is for a reader to wonder at: here the log itself was looked at, and its end is checked above.
    unchecked: (verified.checked.events === 0 ? [] : verified.incomplete).map(
      ({ detail, count }) => `${count} events: ${detail}`,
    ),
    outstanding: projections.outstanding,
    head,
    missing: projections.missing,
    isWhole: isWhole && verified.incomplete.length === 0,
  };
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
