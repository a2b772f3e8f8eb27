import type { AccessEvent, AccessLog, AccessPage } from '../../store/access-log.ts';
import type { LedgerStore, Page, ScopePage } from '../../store/ledger-store.ts';
import { charsOf } from '../../store/pages.ts';
import type { FindPage, LookupName, RecordStore } from '../../store/record-store.ts';
import type { Walk } from './walk.ts';

interface Bound {
  readonly charsMax: number;
}

export type BoundedLedgers = ReturnType<typeof boundedLedgers>;
export type BoundedRecords = ReturnType<typeof boundedRecords>;

/** The ledgers as a walk reads them. Pages are bounded in characters, so a short page need not be the last. */
export function boundedLedgers(walk: Walk, store: LedgerStore) {
  return {
    walk,
    head: (ledgerId: string) => walk.readOne(() => store.head(ledgerId, walk.signal)),
    cell: async (key: string) => {
      const cell = await walk.readOne(() => store.cell(key));
      walk.use(1, cell?.value.length ?? 0);
      return cell;
    },
    read: (ledgerId: string, from: number, limit: number, charsMax: number) =>
      walk.readPage(() => store.read(ledgerId, from, limit, charsMax), sizeOf),
    readScope: (ledgerId: string, scope: string, page: ScopePage & Bound) =>
      walk.readPage(
        () => store.readScope(ledgerId, scope, page),
        ({ entries, missing }) => ({ count: entries.length + missing.length, chars: charsOf(entries) }),
      ),
    scopeSeqs: (ledgerId: string, scope: string, page: ScopePage) =>
      walk.readPage(
        () => store.scopeSeqs(ledgerId, scope, page),
        (seqs) => ({ count: Math.ceil(seqs.length / seqsOfEntry), chars: 0 }),
      ),
    lines: (list: string, page: Page & Bound) => walk.readPage(() => store.lines(list, page), sizeOf),
  };
}

export function boundedRecords(walk: Walk, store: Pick<RecordStore, 'find'>) {
  return {
    walk,
    find: (kind: string, lookup: LookupName, page: FindPage & Bound) =>
      walk.readPage(() => store.find(kind, lookup, page), sizeOf),
  };
}

export function boundedAccesses(walk: Walk, log: AccessLog, actorId: string, page: AccessPage): Promise<AccessEvent[]> {
  let examined = 0;
  const reading = {
    signal: walk.signal,
    examined(count: number) {
      examined += count;
    },
  };
  return walk.readPage(
    () => log.list(actorId, page, reading),
    () => ({ count: examined, chars: examined * accessChars }),
  );
}

/** Reading a bare seq costs a tenth of an entry. */
const seqsOfEntry = 10;
/** Characters of an access event with its method, path and ids. */
const accessChars = 400;

function sizeOf(page: Parameters<typeof charsOf>[0]): { readonly count: number; readonly chars: number } {
  return { count: page.length, chars: charsOf(page) };
}
