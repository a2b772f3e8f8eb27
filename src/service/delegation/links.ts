import { LedgerError } from '../../domain/errors.ts';
import { delegatesMax, type Grant, holdsAt } from '../../domain/event/grant.ts';
import { names } from '../../domain/event/projection.ts';
import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import type { Line } from '../../store/ledger-store.ts';
import { charsOf, linePages, linesOf } from '../../store/pages.ts';
import { decodeOrPassOver, storedCell, storedLine } from '../../store/unreadable-record.ts';
import type { checkListPage } from '../calls/list-page.ts';
import { parseGrant, parseTime } from '../reading/stored-lines.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { DelegationObject } from './delegations.ts';

/** A delegation link in its state now, or at an earlier time. */
export interface Link {
  readonly grant: Grant;
  /** When the link was revoked or replaced, ISO. null if it was not. */
  readonly endedAt: string | null;
}

type LinkedObject = Pick<DelegationObject, 'scope' | 'id'>;
type LinkPage = ReturnType<typeof checkListPage>;

/** Links of one read. */
const linksChunk = 500;
/** Links whose end is looked up at once. */
const looksAtOnceMax = 16;
/** Links of one object that are examined for one list at most: as many as a list's last page reaches to. */
export const linksMax = 101_000;

/** A page of all links that an object ever had, in the order of granting. Links that cannot be read are left out. */
export async function everyLink(store: BoundedLedgers, { scope, id }: LinkedObject, page: LinkPage): Promise<Link[]> {
  const list = names.links(scope, id);
  const lines = await linesOf(store, list, page);
  store.walk.keep(charsOf(lines));
  return (await linksOf(store, list, lines)).filter((link) => link !== null);
}

/**
 * A page of an object's links that were active at a time (ISO) and for which `wanted` returns true, in the order of
 * granting. Reads from the newest link until it has found as many as can be active at a time. Throws `invalid_argument`
 * if the object has more than `linksMax` links: some might be missed.
 */
export async function heldLinks(
  store: BoundedLedgers,
  { scope, id }: LinkedObject,
  at: string,
  page: LinkPage,
  wanted: (grant: Grant) => boolean = () => true,
): Promise<Link[]> {
  const found: Link[] = [];
  let examined = 0;
  const list = names.links(scope, id);
  for await (const { lines, isLast } of linePages(store, list, linksChunk, true)) {
    for (const [index, link] of (await linksOf(store, list, lines)).entries()) {
      if (link === null || !heldAt(link, at) || !wanted(link.grant)) continue;
      store.walk.keep(lines[index]?.value.length ?? 0);
      found.push(link);
    }
    examined += lines.length;
    if (isLast || found.length >= delegatesMax) break;
    if (examined >= linksMax)
      throw new LedgerError(
        'invalid_argument',
        `This ${scope} has had more than ${linksMax} grants, too many for one list: its proof shows them all, page by page.`,
        { limit: linksMax },
      );
  }
  const held = found.slice(0, delegatesMax);
  return (page.descending ? held : held.reverse()).slice(page.offset, page.offset + page.limit);
}

/**
 * Returns the links in the order of the lines, with null for a line that cannot be read. A link whose end cannot be
 * read counts as ended when it was granted.
 */
function linksOf(store: BoundedLedgers, list: string, lines: readonly Line[]): Promise<(Link | null)[]> {
  return mapConcurrently(lines, looksAtOnceMax, async ({ value }): Promise<Link | null> => {
    const grant = decodeOrPassOver(storedLine(list, value), parseGrant);
    if (grant === undefined) return null;
    const key = names.linkEnded(grant.linkId);
    const ended = await store.cell(key);
    if (ended === null) return { grant, endedAt: null };
    return { grant, endedAt: decodeOrPassOver(storedCell(key, ended.value), parseTime) ?? grant.grantedAt };
  });
}

/** Whether a link was active at a time (ISO): granted, not ended and not expired. */
export function heldAt({ grant, endedAt }: Link, at: string): boolean {
  if (grant.grantedAt > at || (endedAt !== null && endedAt <= at)) return false;
  return holdsAt(grant, at);
}
