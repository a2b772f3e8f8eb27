import type { AccessEvent, AccessLog, AccessPage } from '../../store/access-log.ts';
import type { LedgerStore, Page, ScopePage } from '../../store/ledger-store.ts';
import { charsOf } from '../../store/pages.ts';
import type { FindPage, RecordStore } from '../../store/record-store.ts';
import type { Walk } from './walk.ts';

interface Bound {
  readonly charsMax: number;
}

/**
 * The ledgers as a walk reads them. Pages are bounded in characters too, so a page may be shorter than its limit
 * without being the last.
 */
export interface BoundedLedgers extends Pick<LedgerStore, 'head' | 'scopeSeqs' | 'cell'> {
  readonly walk: Walk;
  read(ledgerId: string, from: number, limit: number, charsMax: number): ReturnType<LedgerStore['read']>;
  readScope(ledgerId: string, scope: string, page: ScopePage & Bound): ReturnType<LedgerStore['readScope']>;
  lines(list: string, page: Page & Bound): ReturnType<LedgerStore['lines']>;
}

/** The records as a walk reads them. */
export interface BoundedRecords {
  readonly walk: Walk;
  find(kind: string, lookup: RecordLookup, page: FindPage & Bound): ReturnType<RecordStore['find']>;
}

type RecordLookup = Parameters<RecordStore['find']>[1];

export function boundedLedgers(walk: Walk, store: LedgerStore): BoundedLedgers {
  return {
    walk,
    head: (ledgerId) => walk.readOne(() => store.head(ledgerId)),
    cell: async (key) => {
      const cell = await walk.readOne(() => store.cell(key));
      walk.use(1, cell?.value.length ?? 0);
      return cell;
    },
    read: (ledgerId, from, limit, charsMax) => walk.readPage(() => store.read(ledgerId, from, limit, charsMax), sizeOf),
    readScope: (ledgerId, scope, page) =>
      walk.readPage(
        () => store.readScope(ledgerId, scope, page),
        ({ entries, missing }) => ({ count: entries.length + missing.length, chars: charsOf(entries) }),
      ),
    scopeSeqs: (ledgerId, scope, page) =>
      walk.readPage(
        () => store.scopeSeqs(ledgerId, scope, page),
        (seqs) => ({ count: Math.ceil(seqs.length / seqsOfEntry), chars: 0 }),
      ),
    lines: (list, page) => walk.readPage(() => store.lines(list, page), sizeOf),
  };
}

export function boundedRecords(walk: Walk, store: Pick<RecordStore, 'find'>): BoundedRecords {
  return { walk, find: (kind, lookup, page) => walk.readPage(() => store.find(kind, lookup, page), sizeOf) };
}

/** A page of an access history. */
export function boundedAccesses(walk: Walk, log: AccessLog, actorId: string, page: AccessPage): Promise<AccessEvent[]> {
  return walk.readPage(
    () => log.list(actorId, page, walk.signal),
    (events) => ({ count: events.length, chars: events.length * accessChars }),
  );
}

/** Reading a bare seq costs a tenth of an entry. */
const seqsOfEntry = 10;
/** Characters of an access event with its method, path and ids. */
const accessChars = 400;

function sizeOf(page: Parameters<typeof charsOf>[0]): { readonly count: number; readonly chars: number } {
  return { count: page.length, chars: charsOf(page) };
}
