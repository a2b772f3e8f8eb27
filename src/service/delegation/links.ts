import { LedgerError } from '../../domain/errors.ts';
import { delegatesMax, type Grant, holdsAt } from '../../domain/grant.ts';
import { names } from '../../domain/projection.ts';
import type { Line } from '../../store/ledger-store.ts';
import { linePages, linesOf } from '../../store/line-pages.ts';
import { charsOf } from '../../store/page-size.ts';
import { decodeOrPassOver, storedCell, storedLine } from '../../store/unreadable-record.ts';
import { mapConcurrently } from '../map-concurrently.ts';
import { parseGrant, parseTime } from '../reading/stored-lines.ts';
import type { WalkedLedgers } from '../walked-stores.ts';
import type { DelegationObject } from './delegation-object.ts';

/** A link as it stands, or stood at some time. */
export interface Link {
  readonly grant: Grant;
  /** ISO; null while it was not revoked or replaced. */
  readonly endedAt: string | null;
}

/** Links read at once. */
const linksChunk = 500;
/** Cells read at once. */
const looksAtOnceMax = 16;
/** Links of one object that are looked through for one list: as many as the last page of a list reaches to. */
export const linksMax = 101_000;

/** Which part of a list of links is shown. */
export interface LinkPage {
  readonly limit: number;
  readonly offset: number;
  readonly descending: boolean;
}

/** A page of all links that an object ever had, in the order of their granting. */
export async function everyLink(
  store: WalkedLedgers,
  { scope, id }: DelegationObject,
  page: LinkPage,
): Promise<Link[]> {
  const list = names.links(scope, id);
  const lines = await linesOf(store, list, page);
  store.walk.keep(charsOf(lines));
  return (await linksOf(store, list, lines)).filter((link) => link !== null);
}

/**
 * A page of an object's links that held at a time (ISO) and that `wanted` asks for, in the order of their granting. Read from the newest
 * until as many are found as can hold at a time. Throws `invalid_argument` where there are too many links to be sure that none is left out.
 */
export async function heldLinks(
  store: WalkedLedgers,
  object: DelegationObject,
  at: string,
  page: LinkPage,
  wanted: (grant: Grant) => boolean = () => true,
): Promise<Link[]> {
  const held = (link: Link) => heldAt(link, at) && wanted(link.grant);
  const { found, isWhole } = await readLinks(store, object, true, delegatesMax, held);
  if (!isWhole) {
    throw new LedgerError(
      'invalid_argument',
      `This ${object.scope} has had more than ${linksMax} grants, too many for one list: its proof shows them all, page by page.`,
      { limit: linksMax },
    );
  }
  return (page.descending ? found : found.reverse()).slice(page.offset, page.offset + page.limit);
}

/** The first `countMax` links that `wanted` asks for; `isWhole` says that they were found, or that there are no more. */
async function readLinks(
  store: WalkedLedgers,
  { scope, id }: DelegationObject,
  descending: boolean,
  countMax: number,
  wanted: (link: Link) => boolean,
): Promise<{ readonly found: Link[]; readonly isWhole: boolean }> {
  const found: Link[] = [];
  let examined = 0;
  const list = names.links(scope, id);
  for await (const { lines, isLast } of linePages(store, list, linksChunk, descending)) {
    for (const [at, link] of (await linksOf(store, list, lines)).entries()) {
      if (link === null || !wanted(link)) continue;
      store.walk.keep(lines[at]?.value.length ?? 0);
      found.push(link);
    }
    if (found.length >= countMax) return { found: found.slice(0, countMax), isWhole: true };
    if (isLast) return { found, isWhole: true };
    examined += lines.length;
    if (examined >= linksMax) break;
  }
  return { found, isWhole: false };
}

/** In the order of the lines; null for one that cannot be read. One whose end cannot be read has ended when it was granted. */
function linksOf(store: WalkedLedgers, list: string, lines: readonly Line[]): Promise<(Link | null)[]> {
  return mapConcurrently(lines, looksAtOnceMax, async ({ value }): Promise<Link | null> => {
    const grant = decodeOrPassOver(storedLine(list, value), parseGrant);
    if (grant === undefined) return null;
    const key = names.linkEnded(grant.linkId);
    const ended = await store.cell(key);
    if (ended === null) return { grant, endedAt: null };
    return { grant, endedAt: decodeOrPassOver(storedCell(key, ended.value), parseTime) ?? grant.grantedAt };
  });
}

/** Whether a link held at a time (ISO): granted, not ended, not run out. */
export function heldAt({ grant, endedAt }: Link, at: string): boolean {
  if (grant.grantedAt > at || (endedAt !== null && endedAt <= at)) return false;
  return holdsAt(grant, at);
}
