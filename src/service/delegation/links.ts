import { LedgerError } from '../../domain/errors.ts';
import { delegatesMax, type Grant, holdsAt } from '../../domain/grant.ts';
import { names } from '../../domain/projection.ts';
import { parseStored } from '../../store/damaged-record.ts';
import type { LedgerStore, Line } from '../../store/ledger-store.ts';
import { linePages } from '../../store/line-pages.ts';
import type { DelegationObject } from './delegation-object.ts';

/** A link as it stands, or stood at some time. */
export interface Link {
  readonly grant: Grant;
  /** ISO; null while it was not revoked or replaced. */
  readonly endedAt: string | null;
}

type LinkStore = Pick<LedgerStore, 'lines' | 'cell'>;

/** Links read at once. */
const linksChunk = 500;
/** Links of one object that are looked through for one list: as many as the last page of a list reaches to. */
export const linksMax = 101_000;

/** Which part of a list of links is shown. */
export interface LinkPage {
  readonly limit: number;
  readonly offset: number;
  readonly descending: boolean;
}

/** A page of all links that an object ever had, in the order of their granting. */
export async function everyLink(store: LinkStore, { scope, id }: DelegationObject, page: LinkPage): Promise<Link[]> {
  return linksOf(store, await store.lines(names.links(scope, id), page));
}

/**
 * A page of an object's links that held at a time (ISO) and that `wanted` asks for, in the order of their granting. Read from the newest
 * until as many are found as can hold at a time. Throws `invalid_argument` where there are too many links to be sure that none is left out.
 */
export async function heldLinks(
  store: LinkStore,
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
  store: LinkStore,
  { scope, id }: DelegationObject,
  descending: boolean,
  countMax: number,
  wanted: (link: Link) => boolean,
): Promise<{ readonly found: Link[]; readonly isWhole: boolean }> {
  const found: Link[] = [];
  let examined = 0;
  for await (const lines of linePages(store, names.links(scope, id), linksChunk, descending)) {
    found.push(...(await linksOf(store, lines)).filter(wanted));
    if (found.length >= countMax) return { found: found.slice(0, countMax), isWhole: true };
    if (lines.length < linksChunk) return { found, isWhole: true };
    examined += linksChunk;
    if (examined >= linksMax) break;
  }
  return { found, isWhole: false };
}

function linksOf(store: LinkStore, lines: readonly Line[]): Promise<Link[]> {
  return Promise.all(
    lines.map(async ({ order, value }) => {
      const grant = parseStored('line', order, value) as Grant;
      const cell = names.linkEnded(grant.linkId);
      const ended = await store.cell(cell);
      return { grant, endedAt: ended === null ? null : (parseStored('cell', cell, ended.value) as string) };
    }),
  );
}

/** Whether a link held at a time (ISO): granted, not ended, not run out. */
export function heldAt({ grant, endedAt }: Link, at: string): boolean {
  if (grant.grantedAt > at || (endedAt !== null && endedAt <= at)) return false;
  return holdsAt(grant, at);
}
