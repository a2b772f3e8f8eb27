import { createHash, randomUUID } from 'node:crypto';
import type { Projection } from '../../src/domain/event/projection.ts';
import type { Claim, Head, LedgerEntry, LedgerStore } from '../../src/store/ledger-store.ts';

/** A new ledger id, so that tests on one store do not meet. */
export function newLedgerId(): string {
  return randomUUID();
}

/** Lower-case hex SHA-256 of a text: something to be a hash. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

interface EntryOptions {
  /** Makes other hashes of the same seqs. */
  readonly salt?: string;
  readonly row?: (seq: number) => string;
  readonly projections?: (seq: number) => readonly Projection[];
}

/** So many entries that follow a head. */
export function entriesAfter(head: Head | null, count: number, options: EntryOptions = {}): LedgerEntry[] {
  const { salt = '', row = (seq) => `row ${seq} ${salt}`, projections = () => [] } = options;
  const entries: LedgerEntry[] = [];
  let { seq, hash: prevHash } = head ?? { seq: -1, hash: '' };
  for (let made = 0; made < count; made++) {
    seq++;
    const hash = hashOf(`${prevHash} ${seq} ${salt}`);
    entries.push({ seq, prevHash, hash, row: row(seq), projections: projections(seq) });
    prevHash = hash;
  }
  return entries;
}

/** The head after entries were written. */
export function headOf(entries: readonly LedgerEntry[]): Head {
  const last = entries.at(-1);
  if (last === undefined) throw new TypeError('No entries');
  return { seq: last.seq, hash: last.hash };
}

/** Appends batches of these sizes, with all events in scope `s`. Returns the head after them. */
export async function appendBatches(
  store: LedgerStore,
  claim: Claim,
  from: Head | null,
  sizes: readonly number[],
): Promise<Head | null> {
  let head = from;
  for (const size of sizes) {
    const entries = entriesAfter(head, size, { projections: () => [{ kind: 'scope', scope: 's' }] });
    await store.append(claim, entries);
    head = headOf(entries);
  }
  return head;
}

/** The seqs from `from` to below `to`. */
export function seqsFrom(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** Entries that go onto the head of a claim. */
export function entriesFor(claim: Claim, count: number, options: EntryOptions = {}): LedgerEntry[] {
  return entriesAfter(claim.head, count, options);
}
