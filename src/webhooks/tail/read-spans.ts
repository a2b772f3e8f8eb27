import type { LedgerEvent } from '../../domain/event/event.ts';
import { isParty, type LedgerFacts } from '../../domain/event/facts.ts';
import {
  grantChangesPrefix,
  names,
  type Projection,
  parseGrantChange,
  projectionsOf,
  seqOrder,
} from '../../domain/event/projection.ts';
import { type GrantObject, readRule } from '../../domain/ledger/permission.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import { mastersEverGranted } from '../../service/reading/master-search.ts';
import type { LedgerStore, Line } from '../../store/ledger-store.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import type { EventRange } from './event-range.ts';

/** From the event of a grant up to, but not including, the event that ended it. */
export interface ReadSpan {
  readonly fromSeq: number;
  /** null: not ended. */
  readonly endSeq: number | null;
  /** ISO. null: never. */
  readonly expiresAt: string | null;
}

interface ReadSpanParts {
  readonly ledgers: LedgerStore;
  readonly limiter: BackgroundLimiter;
}

const always: readonly ReadSpan[] = [{ fromSeq: 0, endSeq: null, expiresAt: null }];
const mastersAtOnce = 64;
/** Main thread time of reading a delegate's grants to one object, measured. */
const grantCostMs = 0.03;

/** Whether the event was written in one of the spans. */
export function isWithin(spans: readonly ReadSpan[], event: LedgerEvent): boolean {
  return spans.some(
    ({ fromSeq, endSeq, expiresAt }) =>
      event.seq >= fromSeq &&
      (endSeq === null || event.seq < endSeq) &&
      (expiresAt === null || event.createdAt < expiresAt),
  );
}

/**
 * Returns a function that finds in which spans an actor could read the events of a master (null: the ledger's own), as
 * far as the range needs it, by the read rule (readRule).
 *
 * The order of the ledger decides, not the time of the question. The grants at the start of the range are stored beside
 * the log, and the events of the range show what changed. So a range costs no more in a ledger of a million grants. For
 * a delegate of masters all masters that it was ever granted are read, up to the 10,000 at which reads stop too.
 */
export function readSpans(
  { ledgers, limiter }: ReadSpanParts,
  facts: LedgerFacts,
  { fromSeq, events }: EventRange,
): (actorId: string, masterId: string | null) => Promise<readonly ReadSpan[]> {
  const changes = changesIn(events, facts);
  const byGrants = async ({ scope, id }: GrantObject, actorId: string): Promise<ReadSpan[]> => {
    const list = names.grantChanges(scope, id, actorId);
    await limiter.take(grantCostMs);
    const before = await ledgers.lines(list, { from: seqOrder(fromSeq), descending: true, limit: 1 });
    return spansOf(list, [...before, ...(changes.get(list) ?? [])]);
  };

  const own = events.filter(({ master }) => master === null);
  /** Spans of masters for the ledger's own events, until all of these events are covered. */
  const byMasters = async (actorId: string): Promise<ReadSpan[]> => {
    const found: ReadSpan[] = [];
    let open = own;
    for await (const { masterId } of mastersEverGranted(ledgers, facts.ledgerId, actorId, mastersAtOnce)) {
      const spans = await byGrants({ scope: 'master', id: masterId }, actorId);
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
    const { objects, anyMaster } = readRule(facts, masterId);
    const spans = await Promise.all([
      ...objects.map((object) => byGrants(object, actorId)),
      ...(anyMaster ? [byMasters(actorId)] : []),
    ]);
    return spans.flat();
  };
}

/** Changes of grants that the events make, by the list that holds them. */
function changesIn(events: readonly LedgerEvent[], facts: LedgerFacts): ReadonlyMap<string, readonly Line[]> {
  const found = new Map<string, Line[]>();
  for (const event of events) {
    for (const projection of changesBy(event, facts)) {
      if (projection.kind !== 'line' || !projection.list.startsWith(grantChangesPrefix)) continue;
      const { list, order, value } = projection;
      found.set(list, [...(found.get(list) ?? []), { order, value }]);
    }
  }
  return found;
}

/** None for a damaged event: reads of the ledger report the damage. */
export function changesBy(event: LedgerEvent, facts: LedgerFacts | null): readonly Projection[] {
  try {
    return projectionsOf(event, facts);
  } catch {
    return [];
  }
}

/** The spans between changes. A damaged change gives no access. */
function spansOf(list: string, changes: readonly Line[]): ReadSpan[] {
  return changes.flatMap(({ order, value }, at): ReadSpan[] => {
    const change = decodeOrPassOver(storedLine(list, value), parseGrantChange) ?? null;
    const next = changes[at + 1];
    if (change === null) return [];
    return [{ fromSeq: Number(order), endSeq: next === undefined ? null : Number(next.order), ...change }];
  });
}
