import type { LedgerEvent } from '../domain/event.ts';
import type { GrantScope } from '../domain/grant.ts';
import { isParty, type LedgerFacts } from '../domain/ledger-facts.ts';
import { type GrantCell, type GrantChange, type MasterLine, names, seqOrder } from '../domain/projection.ts';
import { masterLinksMax } from '../service/ledger-reading.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { EventRange } from './event-range.ts';
import type { Pace } from './pace.ts';

/** A stretch of a ledger in which an actor could read: from a grant, that included, up to what ended it. */
export interface ReadSpan {
  readonly fromSeq: number;
  /** null: nothing has ended it. */
  readonly endSeq: number | null;
  /** ISO; null: it does not run out. */
  readonly expiresAt: string | null;
}

export interface ReadSpanParts {
  readonly ledgers: LedgerStore;
  readonly pace: Pace;
}

const always: readonly ReadSpan[] = [{ fromSeq: 0, endSeq: null, expiresAt: null }];
const mastersAtOnce = 64;
/** Main thread, measured: what a delegate holds of one object. */
const grantCostMs = 0.03;

/** Whether an event was written while its reader could read it. */
export function isWithin(spans: readonly ReadSpan[], event: LedgerEvent): boolean {
  return spans.some(
    ({ fromSeq, endSeq, expiresAt }) =>
      event.seq >= fromSeq &&
      (endSeq === null || event.seq < endSeq) &&
      (expiresAt === null || event.createdAt < expiresAt),
  );
}

/**
 * Tells in which stretches an actor could read the events of a master (null: the ledger's own, which a delegate of any of its masters sees),
 * as far as matters to the events of a range (decisions.md, section 5). The order of the ledger decides and not when it is asked. A
 * grant from before the range that still stands is told by one cell. Where there are later changes those of the range are read, and the one
 * before it, so that a range costs no more in a ledger of a million grants.
 */
export function readSpans(
  { ledgers, pace }: ReadSpanParts,
  facts: LedgerFacts,
  { fromSeq, throughSeq, events }: EventRange,
): (actorId: string, masterId: string | null) => Promise<readonly ReadSpan[]> {
  const byGrants = async (scope: GrantScope, objectId: string, actorId: string): Promise<ReadSpan[]> => {
    await pace.take(grantCostMs);
    const cell = await ledgers.cell(names.grant(scope, objectId, actorId));
    if (cell === null) return [];
    if (cell.version > fromSeq) return spansOf(await changes(scope, objectId, actorId));
    const { grant } = JSON.parse(cell.value) as GrantCell;
    return grant === null ? [] : [{ fromSeq: cell.version, endSeq: null, expiresAt: grant.expiresAt }];
  };

  /** Newest first. An event makes one change at most. */
  const changes = (scope: GrantScope, objectId: string, actorId: string) =>
    ledgers.lines(names.grantChanges(scope, objectId, actorId), {
      from: seqOrder(throughSeq),
      descending: true,
      limit: throughSeq - fromSeq + 2,
    });

  const own = events.filter(({ master }) => master === null);
  /** What says of each of the ledger's own events of the range that it could be read; those of more masters would say it again. */
  const byMasters = async (actorId: string): Promise<ReadSpan[]> => {
    const found: ReadSpan[] = [];
    let open = own;
    for await (const masterId of mastersOf(ledgers, facts.ledgerId, actorId)) {
      const spans = await byGrants('master', masterId, actorId);
      const closed = open.filter((event) => isWithin(spans, event));
      if (closed.length === 0) continue;
      found.push(...spans);
      open = open.filter((event) => !closed.includes(event));
      if (open.length === 0) break;
    }
    return found;
  };

  return async (actorId, masterId) => {
    if (isParty(facts, actorId)) return always;
    const { ledgerId, organizationId } = facts;
    const spans = await Promise.all([
      byGrants('ledger', ledgerId, actorId),
      organizationId === null ? [] : byGrants('organization', organizationId, actorId),
      masterId === null ? byMasters(actorId) : byGrants('master', masterId, actorId),
    ]);
    return spans.flat();
  };
}

/** The stretches between changes, newest first. */
function spansOf(changes: readonly { readonly order: string; readonly value: string }[]): ReadSpan[] {
  const spans: ReadSpan[] = [];
  let endSeq: number | null = null;
  for (const { order, value } of changes) {
    const change = JSON.parse(value) as GrantChange;
    if (change !== null) spans.push({ fromSeq: Number(order), endSeq, expiresAt: change.expiresAt });
    endSeq = Number(order);
  }
  return spans;
}

/** The masters of a ledger that an actor ever had a grant of: as many as its reads look at. */
async function* mastersOf(ledgers: LedgerStore, ledgerId: string, actorId: string): AsyncIterable<string> {
  let from: string | undefined;
  for (let count = 0; count < masterLinksMax; count += mastersAtOnce) {
    const page = { limit: mastersAtOnce, ...(from === undefined ? {} : { from, offset: 1 }) };
    const lines = await ledgers.lines(names.masterLinksOf(ledgerId, actorId), page);
    for (const { value } of lines) yield (JSON.parse(value) as MasterLine).masterId;
    from = lines.at(-1)?.order;
    if (lines.length < mastersAtOnce) return;
  }
}
