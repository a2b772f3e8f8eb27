import { names } from '../../domain/event/projection.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { linePages } from '../../store/line-pages.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import { lineText } from './expectations.ts';
import type { FingerprintSet } from './fingerprint-set.ts';

const readsAtOnceMax = 16;
const listPageLines = 1_000;

interface ExtrasParts {
  readonly ledgerId: string;
  readonly ledgers: LedgerStore;
  /** What follows from later events is not checked. */
  readonly headSeq: number;
  /**
   * Called for each stored value that follows from no event, with the seq that the value names. null if it names none.
   */
  readonly extra: (seq: number | null, detail: string) => void;
}

/** What follows from the events of one ledger. */
interface ExpectedByName {
  /** The cells by their key. */
  readonly cells: ReadonlyMap<string, unknown>;
  readonly masters: ReadonlySet<string>;
  readonly lists: ReadonlySet<string>;
  readonly lines: FingerprintSet;
}

/**
 * Finds the extra projections that can be found without reading the whole store: lines in the lists of a ledger, and
 * closings of a ledger or master that no event closed.
 */
export async function findExtrasByName(parts: ExtrasParts, expected: ExpectedByName): Promise<void> {
  const { ledgers, ledgerId, headSeq, extra } = parts;
  const closings = [names.ledgerClosed(ledgerId), ...[...expected.masters].map(names.masterClosed)];
  await forEachConcurrently(closings, readsAtOnceMax, async (key) => {
    const stored = expected.cells.has(key) ? null : await ledgers.cell(key);
    if (stored !== null && stored.version <= headSeq) extra(stored.version, `${key} follows from no event`);
  });
  for (const list of expected.lists) await findExtraLines(parts, list, expected.lines);
}

async function findExtraLines(
  { ledgers, ledgerId, headSeq, extra }: ExtrasParts,
  list: string,
  expected: FingerprintSet,
): Promise<void> {
  const isShared = list.startsWith(names.ledgersOf(''));
  for await (const { lines } of linePages(ledgers, list, listPageLines))
    for (const { order, value } of lines) {
      if (expected.has(lineText({ list, order, value }))) continue;
      if (isShared ? !order.split('|').includes(ledgerId) : isNewer(order, headSeq)) continue;
      extra(null, `a line of ${list} follows from no event`);
    }
}

/** Whether a line belongs to an event after the head. For lists that are ordered by event. */
function isNewer(order: string, headSeq: number): boolean {
  return /^\d{16}$/.test(order) && Number(order) > headSeq;
}
