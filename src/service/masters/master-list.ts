import type { MasterFacts } from '../../domain/event/facts.ts';
import { names, seqOrder } from '../../domain/event/projection.ts';
import { checkLabel, checkName, checkTime } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ListMastersRequest } from '../../gen/svc/v1/masters_pb.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { decodeOrPassOver, passOverDamaged, storedLine, tellUnreadable } from '../../store/unreadable-record.ts';
import { checkIfGiven, checkOneOf, statuses } from '../calls/given-fields.ts';
import { unknownCursor } from '../calls/list-cursor.ts';
import { type CursorPage, checkCursorPage } from '../calls/list-page.ts';
import { seqBounds } from '../reading/event-bounds.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { collectPage, type ListChunk, type ListedPage, linesWithin } from '../reading/list-walk.ts';
import { parseMasterLine } from '../reading/stored-lines.ts';
import { type BoundedLedgers, boundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';

const mastersAtOnceMax = 200;
/** Cells that are read for each master. */
const masterLooks = 3;

/** The seq of the event that created a master. To a delegate of single masters: the id of the master. */
const SEQ_PLACE = /^\d{16}$/;
const MASTER_PLACE = /^(?:\d{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

interface MasterQuery extends CursorPage {
  readonly businessRef: string | undefined;
  readonly scope: string | undefined;
  readonly status: string | undefined;
  /** ISO times, inclusive. */
  readonly from: string | null;
  readonly to: string | null;
}

/** A master of a list. Its id is null if the line cannot be read. */
interface MasterEntry {
  readonly place: string;
  readonly masterId: string | null;
}

export function checkMasterQuery(request: ListMastersRequest): MasterQuery {
  return {
    businessRef: checkIfGiven(checkName, 'business_ref', request.businessRef),
    scope: checkIfGiven(checkLabel, 'scope', request.scope),
    status: checkOneOf('status', request.status, statuses),
    from: request.from === undefined ? null : isoTime(checkTime('from', request.from)),
    to: request.to === undefined ? null : isoTime(checkTime('to', request.to)),
    ...checkCursorPage(request, MASTER_PLACE),
  };
}

/** A page of the masters of a ledger. `readable`: the masters that the caller may read; null for all of the ledger. */
export async function readMasterPage(
  walk: Walk,
  store: LedgerStore,
  reading: LedgerReading,
  ledgerId: string,
  readable: readonly string[] | null,
  query: MasterQuery,
): Promise<ListedPage<ReturnType<typeof masterSummary>>> {
  // Whether the caller may read the whole ledger may have changed since it got the cursor.
  if (query.after !== null && SEQ_PLACE.test(query.after) !== (readable === null)) throw unknownCursor(query.after);
  const isFiltered = isFilteredBy(query, readable !== null);
  const show = async ({ masterId }: MasterEntry) => {
    if (masterId === null) return null;
    const wait = walk.whenFree();
    if (wait !== null) await wait;
    walk.use(masterLooks, 0);
    const master = await passOverDamaged(reading.masterFacts(masterId));
    if (master === null) {
      const error = new Error('it is listed but not there');
      tellUnreadable({ kind: 'cell', id: names.master(masterId), error });
      return null;
    }
    if (!matches(master, query)) return null;
    const status = await reading.masterStatus(master);
    return query.status === undefined || status === query.status ? masterSummary(master, status) : null;
  };
  const bounded = boundedLedgers(walk, store);
  const offset = isFiltered ? 0 : query.offset;
  const atOnce = isFiltered ? mastersAtOnceMax : Math.min(mastersAtOnceMax, query.limit + 1);
  const part = { offset, atOnce };
  const chunks =
    readable === null ? mastersOfLedger(bounded, ledgerId, query, part) : grantedMasters(readable, query, part);
  const placeOf = ({ place }: MasterEntry): string => place;
  const list = { what: 'masters', chunks, placeOf, passedPlaceOf: placeOf, show, everyEntryCounts: !isFiltered };
  return collectPage(walk, list, { ...query, offset: query.offset - offset });
}

/** Whether each master has to be examined. In the list of a whole ledger, times bound the list. */
function isFilteredBy({ businessRef, scope, status, from, to }: MasterQuery, filtersByTime: boolean): boolean {
  const isTimed = filtersByTime && (from !== null || to !== null);
  return isTimed || businessRef !== undefined || scope !== undefined || status !== undefined;
}

function matches(master: MasterFacts, { businessRef, scope, from, to }: MasterQuery): boolean {
  return (
    (businessRef === undefined || master.businessRef === businessRef) &&
    (scope === undefined || master.scope === scope) &&
    (from === null || master.createdAt >= from) &&
    (to === null || master.createdAt <= to)
  );
}

interface Part {
  readonly offset: number;
  readonly atOnce: number;
}

async function* mastersOfLedger(
  store: BoundedLedgers,
  ledgerId: string,
  { from, to, after, descending }: MasterQuery,
  part: Part,
): AsyncGenerator<ListChunk<MasterEntry>, void> {
  const head = await store.head(ledgerId);
  if (head === null) return;
  const startSeq = after === null ? null : Number(after) + (descending ? -1 : 1);
  const query = { fromSeq: null, eventId: null, from, to, startSeq, descending };
  const { low, high } = await seqBounds(store, ledgerId, head.seq, query);
  if (low > high) return;
  const list = names.mastersOf(ledgerId);
  const bounds = { low: seqOrder(low), high: seqOrder(high) };
  for await (const { entries, isLast } of linesWithin(store, list, bounds, { ...part, descending }))
    yield {
      isLast,
      entries: entries.map(({ order, value }) => ({
        place: order,
        masterId: decodeOrPassOver(storedLine(list, value), parseMasterLine)?.masterId ?? null,
      })),
    };
}

/** Ids are UUIDv7, which sort by their time of creation. */
async function* grantedMasters(
  readable: readonly string[],
  { after, descending }: MasterQuery,
  { offset, atOnce }: Part,
): AsyncGenerator<ListChunk<MasterEntry>, void> {
  const sorted = descending ? readable.toSorted().reverse() : readable.toSorted();
  const behind = sorted.filter((id) => after === null || (descending ? id < after : id > after));
  for (let at = offset; at < behind.length; at += atOnce) {
    const ids = behind.slice(at, at + atOnce);
    yield { entries: ids.map((id) => ({ place: id, masterId: id })), isLast: at + atOnce >= behind.length };
  }
}

function masterSummary(master: MasterFacts, status: string) {
  return {
    uuid: master.masterId,
    scope: master.scope,
    status,
    businessRef: master.businessRef,
    createdAt: master.createdAt,
    ledgerId: master.ledgerId,
    createdByActorId: master.createdBy,
  };
}
