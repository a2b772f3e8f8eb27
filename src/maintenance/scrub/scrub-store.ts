import { LedgerError } from '../../domain/errors.ts';
import type { StoreInspection, StrayBucket } from '../../store/store-inspection.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import { cellText, type Expectations, lineText } from './expectations.ts';
import type { Finding } from './finding.ts';
import { FingerprintSet } from './fingerprint-set.ts';
import { wrongRecordForm } from './record-forms.ts';
import { type LedgerScrub, type ScrubParts, scrubLedger } from './scrub-ledger.ts';

/** Signatures are verified in this thread. More ledgers at a time would only keep the store busy meanwhile. */
const ledgersAtOnceMax = 8;
/**
 * Two limits in one: projections without an event, and damaged rows, that a scrub collects at most. Further ones are
 * not counted.
 */
const strayMax = 10_000;
/** Findings kept. Further ones are only counted. */
const keptMax = 10_000;

interface ScrubProgress {
  readonly what: 'ledgers' | 'projections';
  /** The share of the store that has been read, 0 to 1. */
  readonly share: number;
  readonly events: number;
}

/** The result of a scrub. */
export interface StoreScrub {
  readonly ledgers: number;
  readonly events: number;
  readonly signatures: number;
  readonly findings: readonly Finding[];
  /** Includes the findings that were not kept. */
  readonly findingCount: number;
  readonly unchecked: readonly string[];
  readonly outstanding: number;
  readonly written: number;
}

type LedgerParts = Omit<ScrubParts, 'expectations'>;

/**
 * Checks a whole store. First it looks for buckets after the end of their log. Then it checks every ledger. Then it
 * looks for projections that follow from no event. Needs 13 to 27 bytes of memory for each cell and line: some hundred
 * bytes a ledger and master. Throws LedgerError `unavailable` or `overloaded` if the store does not answer.
 */
export async function scrubStore(parts: LedgerParts, progress: (done: ScrubProgress) => void): Promise<StoreScrub> {
  const { inspection } = parts;
  const expectations: Expectations = { cells: new FingerprintSet(), lines: new FingerprintSet() };
  const total = { ledgers: 0, events: 0, signatures: 0, outstanding: 0, written: 0, findingCount: 0 };
  const findings: Finding[] = [];
  const unchecked: string[] = [];
  // First, so that nothing is written to a ledger whose log is torn.
  const torn = new Set<string>();
  for await (const bucket of inspection.strayBuckets()) {
    torn.add(bucket.ledgerId);
    total.findingCount += 1;
    keep(findings, [strayBucketFinding(bucket)]);
  }
  await forEachConcurrently(inspection.ledgerIds(), ledgersAtOnceMax, async ({ found: ledgerId, share }) => {
    const finish = torn.has(ledgerId) ? null : parts.finish;
    const scrub = await scrubOrFind({ ...parts, finish, expectations }, ledgerId);
    total.ledgers += 1;
    total.events += scrub.events;
    total.signatures += scrub.signatures;
    total.outstanding += scrub.outstanding;
    total.written += scrub.written;
    total.findingCount += scrub.findingCount;
    keep(findings, scrub.findings);
    keep(
      unchecked,
      scrub.unchecked.map((text) => `ledger ${ledgerId}: ${text}`),
    );
    progress({ what: 'ledgers', share, events: total.events });
  });
  for (const finding of await damagesOf(inspection)) {
    total.findingCount += 1;
    keep(findings, [finding]);
  }
  const strays = await straysOf(inspection, expectations, (share) =>
    progress({ what: 'projections', share, events: total.events }),
  );
  if (strays.size > 0) await forgetNewer(parts, strays);
  total.findingCount += strays.size;
  const named = [...strays.values()].map((what) => `${what} follows from no event`);
  keep(
    findings,
    named.map((detail) => ({ ledgerId: null, seq: null, type: 'projection_extra', detail })),
  );
  return { ...total, findings, unchecked };
}

/**
 * Checks a ledger. An error becomes a finding, unless the store does not answer: the damage of one ledger must not keep
 * the others from being checked.
 */
async function scrubOrFind(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  try {
    return await scrubLedger(parts, ledgerId);
  } catch (error) {
    if (error instanceof LedgerError && (error.code === 'unavailable' || error.code === 'overloaded')) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const finding: Finding = {
      ledgerId,
      seq: null,
      type: 'unchecked_ledger',
      detail: `the ledger could not be checked to its end: ${why}`,
    };
    const nothing = { events: 0, signatures: 0, unchecked: [], outstanding: 0, written: 0 };
    return { ledgerId, ...nothing, findings: [finding], findingCount: 1 };
  }
}

/** Damaged rows that belong to no ledger's log. */
async function damagesOf(inspection: StoreInspection): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const { found } of inspection.damagedRows())
    if (findings.length < strayMax) findings.push({ ...found, type: 'damaged_row' });
  for await (const { found } of inspection.records()) {
    const detail = wrongRecordForm(found);
    if (detail === null || findings.length >= strayMax) continue;
    const key = `kind=${found.kind}, id=${found.id}`;
    findings.push({ ledgerId: null, seq: null, type: 'damaged_row', detail, table: 'record', key });
  }
  return findings;
}

/** A log with a bucket after its end grows until it reaches that bucket, and is broken then. */
function strayBucketFinding({ ledgerId, bucket, seq, end }: StrayBucket): Finding {
  const where = end.seq < 0 ? 'the ledger has no event' : `the ledger ends in bucket ${end.bucket} at seq ${end.seq}`;
  const detail = `bucket ${bucket} has been written to, and ${where}: what lies between was lost, as by a restore of several moments; let no node write to the ledger`;
  return { ledgerId, seq, type: 'wrong_head', detail };
}

function keep<T>(kept: T[], more: readonly T[]): void {
  kept.push(...more.slice(0, Math.max(0, keptMax - kept.length)));
}

/** The cells and lines that are not expected: their text, and a description. */
async function straysOf(
  inspection: StoreInspection,
  { cells, lines }: Expectations,
  progress: (share: number) => void,
): Promise<Map<string, string>> {
  const strays = new Map<string, string>();
  for await (const { found, share } of inspection.cells()) {
    const text = cellText(found);
    if (!cells.has(text) && strays.size < strayMax) strays.set(text, `the value of ${found.key}`);
    progress(share / 2);
  }
  for await (const { found, share } of inspection.lines()) {
    const text = lineText(found);
    if (!lines.has(text) && strays.size < strayMax) strays.set(text, `the line ${found.order} of ${found.list}`);
    progress(0.5 + share / 2);
  }
  return strays;
}

/** Removes what follows from events that were written since the ledgers were checked. */
async function forgetNewer(parts: LedgerParts, strays: Map<string, string>): Promise<void> {
  const seen: Expectations = { cells: new FingerprintSet(), lines: new FingerprintSet() };
  // The findings of this second reading are ignored, and no signature is checked again.
  const again = { ...parts, finish: null, expectations: seen, keys: { document: () => null }, authorityKeys: null };
  await forEachConcurrently(parts.inspection.ledgerIds(), ledgersAtOnceMax, async ({ found }) => {
    await scrubOrFind(again, found);
  });
  for (const text of strays.keys()) if (seen.cells.has(text) || seen.lines.has(text)) strays.delete(text);
}
