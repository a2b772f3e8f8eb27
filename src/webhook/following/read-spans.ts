import type { LedgerEvent } from '../../domain/event.ts';
import type { GrantScope } from '../../domain/grant.ts';
import { isParty, type LedgerFacts } from '../../domain/ledger-facts.ts';
import {
  grantChangesPrefix,
  names,
  type Projection,
  parseGrantChange,
  projectionsOf,
  seqOrder,
} from '../../domain/projection.ts';
import { mastersEverGranted } from '../../service/reading/ledger-reading.ts';
import type { LedgerStore, Line } from '../../store/ledger-store.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import type { Pace } from '../pacing/pace.ts';
import type { EventRange } from './event-range.ts';

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
 * as far as matters to the events of a range (decisions.md, section 5). The order of the ledger decides and not when it is asked: what a
 * delegate held where the range begins stands beside the log, and the range itself tells what changed. So a range costs no more in a ledger
 * of a million grants. A delegate of masters costs more: they are looked through, those that it has lost too, up to the 10,000 that reads
 * stop at.
 */
export function readSpans(
  { ledgers, pace }: ReadSpanParts,
  facts: LedgerFacts,
  { fromSeq, events }: EventRange,
): (actorId: string, masterId: string | null) => Promise<readonly ReadSpan[]> {
  const changes = changesIn(events, facts);
  const byGrants = async (scope: GrantScope, objectId: string, actorId: string): Promise<ReadSpan[]> => {
    const list = names.grantChanges(scope, objectId, actorId);
    await pace.take(grantCostMs);
    const before = await ledgers.lines(list, { from: seqOrder(fromSeq), descending: true, limit: 1 });
    return spansOf(list, [...before, ...(changes.get(list) ?? [])]);
  };

  const own = events.filter(({ master }) => master === null);
  /** What says of each of the ledger's own events of the range that it could be read; those of more masters would say it again. */
  const byMasters = async (actorId: string): Promise<ReadSpan[]> => {
    const found: ReadSpan[] = [];
    let open = own;
    for await (const masterId of mastersEverGranted(ledgers, facts.ledgerId, actorId, mastersAtOnce)) {
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

/** The changes of grants that events make, by the list that they stand in, in order. */
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

/** What follows from an event. A damaged one changes nothing here: reads of the ledger tell of it. */
export function changesBy(event: LedgerEvent, facts: LedgerFacts | null): readonly Projection[] {
  try {
    return projectionsOf(event, facts);
  } catch {
    return [];
  }
}

/** The stretches between changes; of one that is there twice the first lasts for nothing. A damaged one gives no access. */
function spansOf(list: string, changes: readonly Line[]): ReadSpan[] {
  return changes.flatMap(({ order, value }, at): ReadSpan[] => {
    const change = decodeOrPassOver(storedLine(list, value), parseGrantChange) ?? null;
    const next = changes[at + 1];
    if (change === null) return [];
    return [{ fromSeq: Number(order), endSeq: next === undefined ? null : Number(next.order), ...change }];
  });
}
