import { names } from '../../domain/event/projection.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { type LinesOfLists, linePages } from '../../store/pages.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import { parseMasterLine } from './stored-lines.ts';

/** Masters of one ledger that are searched for one delegate at most: those of its newest grants. */
export const masterLinksMax = 10_000;
/** Masters that a search checks before it pauses: a millisecond of the main thread. */
const checkedAtOnce = 32;
/** Searches that run at once. Delegates are served in rotation. */
const searchesAtOnce = { total: 4, perCaller: 1 };
/** Ledgers and delegates whose last search is remembered, some 300 bytes each. */
const rememberedMax = 10_000;
/** How long it is remembered that no grant is in force, ms: a damaged grant may be repaired without an event. */
const noneKnownMs = 10_000;

/** The store that a search reads. It may wait, so that searches take a bounded part of the main thread's time. */
export type LinkStore = LinesOfLists &
  Pick<LedgerStore, 'cell'> & {
    /**
     * A seq of the ledger: the changes of all events before it can be read. Without this method, it is not remembered
     * that no grant is in force.
     */
    projectedBefore?(ledgerId: string): Promise<number>;
  };

interface MasterSearchParts {
  readonly store: Pick<LedgerStore, 'head'>;
  readonly now: () => number;
  /** Whether a grant of the master lets the actor read now. */
  mayRead(masterId: string, actorId: string, store?: LinkStore): Promise<boolean>;
}

/** The result of the last search of a delegate's masters of a ledger. */
interface LastSearch {
  /** The ledger's newest event before the search. */
  readonly headSeq: number;
  /** When the search ended. */
  readonly atMs: number;
  /** A master by whose grant the delegate could read. null: there was none. */
  readonly found: ListedMaster | null;
}

interface ListedMaster {
  readonly masterId: string;
  /** How many masters stand before it in the list. */
  readonly newer: number;
}

/**
 * Whether a delegate may read the own events of a ledger by a grant of any of its masters. A delegate may have
 * thousands of grants that have ended, so the result of the last search is checked first. It holds as long as a new
 * search would find the same: only an event of the ledger makes a grant, and each event makes one master newer at most.
 */
export class MasterSearch {
  readonly #parts: MasterSearchParts;
  readonly #lastSearches = new RecentMap<string, LastSearch>(rememberedMax);
  readonly #places = new FairPlaces(searchesAtOnce);

  constructor(parts: MasterSearchParts) {
    this.#parts = parts;
  }

  async mayRead(actorId: string, ledgerId: string, masters: LinkStore): Promise<boolean> {
    const known = await this.#known(actorId, ledgerId);
    if (known !== null) return known;
    await this.#places.take(actorId);
    try {
      // Another check may have searched meanwhile.
      return (await this.#known(actorId, ledgerId)) ?? (await this.#search(actorId, ledgerId, masters));
    } finally {
      this.#places.leave(actorId);
    }
  }

  /** null: only a search shows it. */
  async #known(actorId: string, ledgerId: string): Promise<boolean | null> {
    const last = this.#lastSearches.get(keyOf(actorId, ledgerId));
    if (last === undefined) return null;
    const { found, headSeq, atMs } = last;
    const events = (await this.#headSeq(ledgerId)) - headSeq;
    if (found === null) return events === 0 && this.#parts.now() < atMs + noneKnownMs ? false : null;
    if (found.newer + events >= masterLinksMax) return null;
    return (await this.#parts.mayRead(found.masterId, actorId)) || null;
  }

  async #search(actorId: string, ledgerId: string, masters: LinkStore): Promise<boolean> {
    const headSeq = await this.#headSeq(ledgerId);
    // The log may show a grant before the grant itself can be read.
    const isComplete = ((await masters.projectedBefore?.(ledgerId)) ?? 0) > headSeq;
    let found: ListedMaster | null = null;
    for await (const master of mastersEverGranted(masters, ledgerId, actorId, checkedAtOnce)) {
      if (!(await this.#parts.mayRead(master.masterId, actorId, masters))) continue;
      found = master;
      break;
    }
    const key = keyOf(actorId, ledgerId);
    if (found !== null || isComplete) this.#lastSearches.set(key, { headSeq, atMs: this.#parts.now(), found });
    return found !== null;
  }

  async #headSeq(ledgerId: string): Promise<number> {
    return (await this.#parts.store.head(ledgerId))?.seq ?? 0;
  }
}

function keyOf(actorId: string, ledgerId: string): string {
  return `${actorId}|${ledgerId}`;
}

/** The masters of a ledger that an actor ever had a grant of, newest first. Other work runs between two pages. */
export async function* mastersEverGranted(
  store: LinesOfLists,
  ledgerId: string,
  actorId: string,
  atOnce: number,
): AsyncIterable<ListedMaster> {
  let newer = 0;
  const list = names.masterLinksOf(ledgerId, actorId);
  for await (const { lines, isLast } of linePages(store, list, atOnce, true)) {
    for (const { value } of lines) {
      if (newer >= masterLinksMax) return;
      const line = decodeOrPassOver(storedLine(list, value), parseMasterLine);
      if (line !== undefined) yield { masterId: line.masterId, newer };
      newer += 1;
    }
    if (isLast || newer >= masterLinksMax) return;
    await new Promise((resolve) => void setImmediate(resolve));
  }
}
