import { LedgerError } from '../../domain/errors.ts';
import type { StoreInspection, StrayBucket } from '../../store/store-inspection.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import type { Finding } from './finding.ts';
import { FingerprintSet } from './fingerprint-set.ts';
import { cellText, type Expectations, lineText } from './projection-scrub.ts';
import { wrongRecordForm } from './record-forms.ts';
import { type LedgerScrub, type ScrubParts, scrubLedger } from './scrub-ledger.ts';

/**
 * `cluster verify --all`. The command `scrub` is another one: it looks at the store of a stopped node by
 * scrub-records.ts and scrub-trees.ts.
 */

/** Signatures are verified in this thread. More ledgers at a time would only keep the store busy meanwhile. */
const ledgersAtOnceMax = 8;
/** Findings kept. Further ones are only counted. */
const keptMax = 10_000;

interface ScrubProgress {
  readonly what: 'ledgers' | 'projections';
  /** The share of the store that has been read, 0 to 1. */
  readonly share: number;
  readonly events: number;
}

export interface StoreScrub extends Omit<LedgerScrub, 'ledgerId'> {
  readonly ledgers: number;
}

type LedgerParts = Omit<ScrubParts, 'expectations'>;

/**
 * Checks a whole store: buckets after the end of their log, every ledger, and projections that follow from no event.
 * Needs 13 to 27 bytes of memory for each cell and line: some hundred bytes a ledger and master. Throws LedgerError
 * `unavailable` or `overloaded` if the store does not answer.
 */
export async function scrubStore(parts: LedgerParts, progress: (done: ScrubProgress) => void): Promise<StoreScrub> {
  const { inspection } = parts;
  const expectations: Expectations = { cells: new FingerprintSet(), lines: new FingerprintSet() };
  const total = { ledgers: 0, events: 0, signatures: 0, outstanding: 0, written: 0, findingCount: 0 };
  const findings: Finding[] = [];
  const unchecked: string[] = [];
  const found = (finding: Finding) => {
    total.findingCount += 1;
    keep(findings, [finding]);
  };
  // First, so that nothing is written to a ledger whose log is torn.
  const torn = new Set<string>();
  for await (const bucket of inspection.strayBuckets()) {
    torn.add(bucket.ledgerId);
    found(strayBucketFinding(bucket));
  }
  await forEachConcurrently(inspection.ledgerIds(), ledgersAtOnceMax, async ({ found: ledgerId, share }) => {
    const finish = torn.has(ledgerId) ? null : parts.finish;
    const scrub = await scrubOrFind({ ...parts, finish, expectations }, ledgerId);
    total.ledgers += 1;
    for (const name of ['events', 'signatures', 'outstanding', 'written', 'findingCount'] as const)
      total[name] += scrub[name];
    keep(findings, scrub.findings);
    const places = scrub.unchecked.map((text) => `ledger ${ledgerId}: ${text}`);
    keep(unchecked, places);
    progress({ what: 'ledgers', share, events: total.events });
  });
  await findDamages(inspection, found);
  const strays = await straysOf(inspection, expectations, (share) =>
    progress({ what: 'projections', share, events: total.events }),
  );
  const { count, named } = await withoutNewer(parts, strays);
  total.findingCount += count;
  const extra = { ledgerId: null, seq: null, type: 'projection_extra' } as const;
  const extras = named.map((what) => ({ ...extra, detail: `${what} follows from no event` }));
  keep(findings, extras);
  return { ...total, findings, unchecked };
}

/** An error becomes a finding, unless the store does not answer: the other ledgers are to be checked. */
async function scrubOrFind(parts: ScrubParts, ledgerId: string): Promise<LedgerScrub> {
  try {
    return await scrubLedger(parts, ledgerId);
  } catch (error) {
    if (error instanceof LedgerError && (error.code === 'unavailable' || error.code === 'overloaded')) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const detail = `the ledger could not be checked to its end: ${why}`;
    const finding: Finding = { ledgerId, seq: null, type: 'unchecked_ledger', detail };
    const nothing = { events: 0, signatures: 0, unchecked: [], outstanding: 0, written: 0 };
    return { ledgerId, ...nothing, findings: [finding], findingCount: 1 };
  }
}

async function findDamages(inspection: StoreInspection, found: (finding: Finding) => void): Promise<void> {
  for await (const { found: row } of inspection.damagedRows()) found(row);
  for await (const { found: record } of inspection.records()) {
    const detail = wrongRecordForm(record);
    const key = `kind=${record.kind}, id=${record.id}`;
    if (detail !== null) found({ ledgerId: null, seq: null, type: 'damaged_row', detail, table: 'record', key });
  }
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

/** Stored cells and lines that are not expected. */
interface Strays extends Expectations {
  /** Descriptions of the first `keptMax` of them, by their text. */
  readonly named: Map<string, string>;
}

async function straysOf(
  inspection: StoreInspection,
  { cells, lines }: Expectations,
  progress: (share: number) => void,
): Promise<Strays> {
  const strays: Strays = { cells: new FingerprintSet(), lines: new FingerprintSet(), named: new Map() };
  const take = (text: string, expected: FingerprintSet, stray: FingerprintSet, name: string) => {
    if (expected.has(text)) return;
    stray.add(text);
    if (strays.named.size < keptMax) strays.named.set(text, name);
  };
  for await (const { found, share } of inspection.cells()) {
    take(cellText(found), cells, strays.cells, `the value of ${found.key}`);
    progress(share / 2);
  }
  for await (const { found, share } of inspection.lines()) {
    take(lineText(found), lines, strays.lines, `the line ${found.order} of ${found.list}`);
    progress(0.5 + share / 2);
  }
  return strays;
}

/** Leaves out what follows from events that were written since the ledgers were checked. */
async function withoutNewer(
  parts: LedgerParts,
  { cells, lines, named }: Strays,
): Promise<{ readonly count: number; readonly named: readonly string[] }> {
  if (named.size === 0) return { count: 0, named: [] };
  const seen: Expectations = { cells: new FingerprintSet(), lines: new FingerprintSet() };
  // The findings of this second reading are ignored, and no signature is checked again.
  const again = { ...parts, finish: null, expectations: seen, keys: { document: () => null }, authorityKeys: null };
  await forEachConcurrently(parts.inspection.ledgerIds(), ledgersAtOnceMax, async ({ found }) => {
    await scrubOrFind(again, found);
  });
  const old = [...named].filter(([text]) => !seen.cells.has(text) && !seen.lines.has(text));
  return {
    count: cells.countMissingIn(seen.cells) + lines.countMissingIn(seen.lines),
    named: old.map(([, name]) => name),
  };
}
