import type { LedgerEvent } from '../domain/event.ts';
import type { Grant, GrantScope } from '../domain/grant.ts';
import { isParty, type LedgerFacts } from '../domain/ledger-facts.ts';
import { type GrantCell, type MasterLine, names, seqOrder } from '../domain/projection.ts';
import type { LedgerStore, Line } from '../store/ledger-store.ts';

/** A stretch of a ledger in which an actor could read: from a grant, that included, up to what ended it. */
export interface ReadSpan {
  readonly fromSeq: number;
  /** null: nothing has ended it. */
  readonly endSeq: number | null;
  /** ISO; null: it does not run out. */
  readonly expiresAt: string | null;
}

const always: readonly ReadSpan[] = [{ fromSeq: 0, endSeq: null, expiresAt: null }];
const linesAtOnce = 500;

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
 * as far as matters to the events from `fromSeq` through `throughSeq` (decisions.md, section 5). The order of the ledger decides,
 * as its links tell it, and not when it is asked. A grant from before the range that still stands is told by one cell; the links
 * of an object are read only where there are later changes, and once.
 */
export function readSpans(
  ledgers: LedgerStore,
  facts: LedgerFacts,
  fromSeq: number,
  throughSeq: number,
): (actorId: string, masterId: string | null) => Promise<readonly ReadSpan[]> {
  const linksRead = new Map<string, Promise<ReadonlyMap<string, PastLink[]>>>();
  const linksOf = (list: string) => {
    const read = linksRead.get(list) ?? linksThrough(ledgers, list, throughSeq);
    linksRead.set(list, read);
    return read;
  };

  const byGrants = async (scope: GrantScope, objectId: string, actorId: string): Promise<ReadSpan[]> => {
    const cell = await ledgers.cell(names.grant(scope, objectId, actorId));
    if (cell === null) return [];
    const { grant } = JSON.parse(cell.value) as GrantCell;
    if (cell.version <= fromSeq) {
      return grant === null ? [] : [{ fromSeq: cell.version, endSeq: null, expiresAt: grant.expiresAt }];
    }
    const links = (await linksOf(names.links(scope, objectId))).get(actorId) ?? [];
    return Promise.all(
      links.map(async ({ seq, grant: { linkId, expiresAt } }) => {
        const ended = await ledgers.cell(names.linkEnded(linkId));
        return { fromSeq: seq, endSeq: ended?.version ?? null, expiresAt };
      }),
    );
  };

  const byMasters = async (actorId: string): Promise<ReadSpan[]> => {
    const spans: ReadSpan[] = [];
    for await (const line of allLines(ledgers, names.masterLinksOf(facts.ledgerId, actorId)))
      spans.push(...(await byGrants('master', (JSON.parse(line.value) as MasterLine).masterId, actorId)));
    return spans;
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

interface PastLink {
  /** Of the event that granted it. */
  readonly seq: number;
  readonly grant: Grant;
}

/** The links that were granted up to a seq, by delegate. */
async function linksThrough(
  ledgers: LedgerStore,
  list: string,
  throughSeq: number,
): Promise<ReadonlyMap<string, PastLink[]>> {
  const links = new Map<string, PastLink[]>();
  for await (const { order, value } of allLines(ledgers, list)) {
    if (order > seqOrder(throughSeq)) break;
    const grant = JSON.parse(value) as Grant;
    const own = links.get(grant.delegateActorId) ?? [];
    own.push({ seq: Number(order), grant });
    links.set(grant.delegateActorId, own);
  }
  return links;
}

async function* allLines(ledgers: LedgerStore, list: string): AsyncIterable<Line> {
  let from: string | undefined;
  for (;;) {
    const page = { limit: linesAtOnce, ...(from === undefined ? {} : { from, offset: 1 }) };
    const lines = await ledgers.lines(list, page);
    yield* lines;
    from = lines.at(-1)?.order;
    if (lines.length < linesAtOnce) return;
  }
}
