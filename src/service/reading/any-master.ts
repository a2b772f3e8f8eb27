import { names } from '../../domain/event/projection.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { type LinesOfLists, linePages } from '../../store/pages.ts';
import { decodeOrPassOver, storedLine } from '../../store/unreadable-record.ts';
import { parseMasterLine } from './stored-lines.ts';

/** Masters of one ledger that are looked up for one delegate at most: those of its newest grants. */
export const masterLinksMax = 10_000;
/** Masters that a check looks at before it pauses: a millisecond of the main thread. */
const checkedAtOnce = 32;
/** Checks that look through masters at once. Delegates take turns. */
const looksAtOnce = { total: 4, perCaller: 1, waiting: Number.POSITIVE_INFINITY };
/** Ledgers and delegates whose last look is remembered, some 300 bytes each. */
const rememberedMax = 10_000;
/** How long it is remembered that no grant is in force, ms. A grant that is being written may be in the log already. */
const noneKnownMs = 10_000;

/** Where a look through masters reads. What it looks at is paid for there. */
export type LinkStore = LinesOfLists & Pick<LedgerStore, 'cell'>;

interface AnyMasterParts {
  readonly store: Pick<LedgerStore, 'head'>;
  readonly now: () => number;
  /** Whether a grant of the master lets the actor read now. */
  mayRead(masterId: string, actorId: string, store?: LinkStore): Promise<boolean>;
}

/** What the last look through a delegate's masters of a ledger has found. */
interface LastLook {
  /** The ledger's newest event before the look. */
  readonly headSeq: number;
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
 * thousands of grants that have ended. So what the last look through them found is looked at first, and answers as a
 * new look would: a grant comes with an event of the ledger alone, and each event makes one master newer at most.
 */
export class AnyMaster {
  readonly #parts: AnyMasterParts;
  readonly #lastLooks = new RecentMap<string, LastLook>(rememberedMax);
  readonly #places = new FairPlaces(looksAtOnce, () => new Error('never: any number of checks may wait'));
  readonly #never = new AbortController().signal;

  constructor(parts: AnyMasterParts) {
    this.#parts = parts;
  }

  async mayRead(actorId: string, ledgerId: string, masters: LinkStore): Promise<boolean> {
    const known = await this.#known(actorId, ledgerId);
    if (known !== null) return known;
    await this.#places.take(actorId, this.#never, () => new Error('never: no check is called off'));
    try {
      // Another check may have looked meanwhile.
      return (await this.#known(actorId, ledgerId)) ?? (await this.#look(actorId, ledgerId, masters));
    } finally {
      this.#places.leave(actorId);
    }
  }

  /** null: only a look shows it. */
  async #known(actorId: string, ledgerId: string): Promise<boolean | null> {
    const last = this.#lastLooks.get(keyOf(actorId, ledgerId));
    if (last === undefined) return null;
    const { found, headSeq, atMs } = last;
    const events = (await this.#headSeq(ledgerId)) - headSeq;
    if (found === null) return events === 0 && this.#parts.now() < atMs + noneKnownMs ? false : null;
    if (found.newer + events >= masterLinksMax) return null;
    return (await this.#parts.mayRead(found.masterId, actorId)) || null;
  }

  async #look(actorId: string, ledgerId: string, masters: LinkStore): Promise<boolean> {
    const headSeq = await this.#headSeq(ledgerId);
    const atMs = this.#parts.now();
    let found: ListedMaster | null = null;
    for await (const master of mastersEverGranted(masters, ledgerId, actorId, checkedAtOnce)) {
      if (!(await this.#parts.mayRead(master.masterId, actorId, masters))) continue;
      found = master;
      break;
    }
    this.#lastLooks.set(keyOf(actorId, ledgerId), { headSeq, atMs, found });
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
