import { isParty, type LedgerFacts } from '../../domain/event/facts.ts';
import { names } from '../../domain/event/projection.ts';
import { checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ListLedgersRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import type { LedgerStore, Line } from '../../store/ledger-store.ts';
import { decodeOrPassOver, passOverDamaged, storedLine } from '../../store/unreadable-record.ts';
import { checkIfGiven, checkOneOf, statuses } from '../calls/given-fields.ts';
import { type CursorPage, checkCursorPage } from '../calls/list-page.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { collectPage, type ListedPage, linesWithin, type OrderBounds } from '../reading/list-walk.ts';
import { parseLedgerLine } from '../reading/stored-lines.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';

const linesAtOnce = 200;

const ledgerTypes = ['ORDER', 'FACILITY_ROOT', 'ENTITY_ROOT', 'ENGAGEMENT'];
const roles = ['buyer', 'supplier', 'primary', 'counterparty', 'delegate'];

/**
 * A ledger that was shown: `<created_at>|<ledger id>`. A line that was passed over: its order and a bar. The order of a
 * delegate's line goes on with `|<scope>|<object id>`, so a ledger may have many lines
 * (src/domain/event/projection.ts).
 */
const LEDGER_PLACE =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\|[0-9a-f-]{36}(?:\|(?:(?:organization|ledger|master)\|[0-9a-f-]{36}\|)?)?$/;

interface LedgerQuery extends CursorPage {
  readonly type: string | undefined;
  readonly status: string | undefined;
  readonly role: string | undefined;
  readonly counterpartyActorId: string | undefined;
  /** ISO times, inclusive. */
  readonly from: string | null;
  readonly to: string | null;
}

export function checkLedgerQuery(request: ListLedgersRequest): LedgerQuery {
  return {
    type: checkOneOf('ledger_type', request.ledgerType, ledgerTypes),
    status: checkOneOf('status', request.status, statuses),
    role: checkOneOf('role', request.role, roles),
    counterpartyActorId: checkIfGiven(checkUuid, 'counterparty_actor_id', request.counterpartyActorId),
    from: request.from === undefined ? null : isoTime(checkTime('from', request.from)),
    to: request.to === undefined ? null : isoTime(checkTime('to', request.to)),
    ...checkCursorPage(request, LEDGER_PLACE),
  };
}

/** A page of the ledgers that an actor is a party of or holds a grant in. */
export function readLedgerPage(
  walk: Walk,
  store: LedgerStore,
  reading: LedgerReading,
  actorId: string,
  query: LedgerQuery,
): Promise<ListedPage<ReturnType<typeof ledgerMessage>>> {
  const list = names.ledgersOf(actorId);
  const seesByGrant = reading.grantCheck(walk, actorId);
  const show = async ({ value }: Line) => {
    const wait = walk.whenFree();
    if (wait !== null) await wait;
    walk.use(1, value.length);
    const entry = decodeOrPassOver(storedLine(list, value), parseLedgerLine);
    if (entry === undefined || (query.role !== undefined && entry.role !== query.role)) return null;
    const ledger = await passOverDamaged(reading.ledgerFacts(entry.ledgerId));
    if (ledger === null || (query.type !== undefined && ledger.type !== query.type)) return null;
    if (query.counterpartyActorId !== undefined && !isParty(ledger, query.counterpartyActorId)) return null;
    if (entry.role === 'delegate' && !(await seesByGrant(entry))) return null;
    const status = await reading.ledgerStatus(entry.ledgerId);
    return query.status === undefined || status === query.status ? ledgerMessage(ledger, status) : null;
  };
  const { descending } = query;
  const lines = { atOnce: linesAtOnce, descending, offset: 0 };
  return collectPage(
    walk,
    {
      what: 'ledgers',
      chunks: linesWithin(boundedLedgers(walk, store), list, boundsOf(query), lines),
      placeOf: ({ order }) => order.split('|', 2).join('|'),
      passedPlaceOf: ({ order }) => `${order}|`,
      show,
      everyEntryCounts: false,
    },
    query,
  );
}

/** The orders of the lines that a page may show. Orders begin with the time at which the ledger was created. */
function boundsOf({ from, to, after, descending }: LedgerQuery): OrderBounds {
  const low = [from ?? ''];
  const high = [to === null ? '~' : behindAllOf(to)];
  if (after !== null && descending) high.push(after.replace(/\|$/, ''));
  if (after !== null && !descending) low.push(after.endsWith('|') ? after : behindAllOf(after));
  const bounds = { low: low.toSorted().at(-1) ?? '', high: high.toSorted()[0] ?? '~' };
  return { low: bounds.low === '' ? null : bounds.low, high: bounds.high === '~' ? null : bounds.high };
}

/** Sorts behind all orders that begin with this text and a bar. */
function behindAllOf(start: string): string {
  return `${start}}`;
}

/** What the answers to reads show of a ledger. */
export function ledgerMessage(ledger: LedgerFacts, status: string) {
  const isRoot = ledger.type === 'FACILITY_ROOT';
  return {
    id: ledger.ledgerId,
    buyerActorId: ledger.buyerActorId ?? undefined,
    // An organization's root ledger shows its founder as the supplier, as the signed form of its closing does.
    supplierActorId: (isRoot ? ledger.primaryActorId : ledger.supplierActorId) ?? undefined,
    status,
    ledgerType: ledger.type,
    buyerOrganizationId: ledger.buyerOrganizationId ?? undefined,
    supplierOrganizationId: (isRoot ? ledger.organizationId : ledger.supplierOrganizationId) ?? undefined,
    createdAt: ledger.createdAt,
    primaryActorId: ledger.primaryActorId ?? undefined,
    counterpartyActorId: ledger.counterpartyActorId ?? undefined,
    entityId: ledger.entityId ?? undefined,
    purpose: ledger.purpose ?? undefined,
  };
}
