import { inUnits } from '../../runtime/limits/memory-budget.ts';
import type { FollowedEvent } from './followed-event.ts';

/** Seqs of a page. A follower that waits for one event has the store read no more than so many. */
export const pageSeqs = 32;
/** What an event holds in memory for each character of its row: the row's texts, and what is made of them. */
const bytesOfChar = 4;
const eventBytes = 1_024;

/** Counts what the pages of a node hold, in the node's memory budget. */
interface PageMemory {
  add(bytes: number): void;
  release(bytes: number): void;
}

/** Events of one ledger: between two multiples of `pageSeqs`, if they are among the pages of a node. */
export interface FollowedPage {
  readonly ledgerId: string;
  readonly first: number;
  /** From `first` on. null: the log lacks that seq, or its row cannot be read. */
  readonly events: (FollowedEvent | null)[];
  /** Resolves when the read under way has ended. It never rejects. */
  reading: Promise<void> | null;
  bytes: number;
}

/**
 * The pages of followed ledgers that a node has in memory: at most `bytesMax`, of those that are being read and those
 * that were used last. A page that was dropped is read again.
 */
export class FollowedPages {
  readonly #bytesMax: number;
  readonly #memory: PageMemory;
  /** In the order of use. */
  readonly #pages = new Map<string, FollowedPage>();
  #bytes = 0;

  constructor(bytesMax: number, memory: PageMemory) {
    this.#bytesMax = bytesMax;
    this.#memory = memory;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** undefined: it is not in memory. */
  at(ledgerId: string, seq: number): FollowedEvent | null | undefined {
    const page = this.#pages.get(keyOf(ledgerId, seq));
    return page?.events[seq - page.first];
  }

  /** The page of a seq, which becomes the one that was used last. */
  use(ledgerId: string, seq: number): FollowedPage {
    const key = keyOf(ledgerId, seq);
    const found = this.#pages.get(key);
    const page = found ?? pageFrom(ledgerId, seq - (seq % pageSeqs));
    if (found !== undefined) this.#pages.delete(key);
    this.#pages.set(key, page);
    return page;
  }

  /** Whether the page was not dropped. */
  has(page: FollowedPage): boolean {
    return this.#pages.get(keyOf(page.ledgerId, page.first)) === page;
  }

  add(page: FollowedPage, event: FollowedEvent | null, rowChars: number): void {
    page.events.push(event);
    if (!this.has(page)) return;
    // The events of a page are released together.
    const bytes = inUnits(eventBytes + rowChars * bytesOfChar);
    page.bytes += bytes;
    this.#bytes += bytes;
    this.#memory.add(bytes);
    this.#makeRoom((oldest) => oldest !== page && oldest.reading === null);
    // These come last: the reads under way are lost, and are done again. A page without events would free nothing.
    this.#makeRoom((oldest) => oldest !== page && oldest.bytes > 0);
  }

  /** Drops such pages until the others fit. */
  #makeRoom(mayDrop: (page: FollowedPage) => boolean): void {
    for (const [key, oldest] of this.#pages) {
      if (this.#bytes <= this.#bytesMax) return;
      if (mayDrop(oldest)) this.#drop(key, oldest);
    }
  }

  /** Drops all pages of a ledger that nobody follows any more. */
  forget(ledgerId: string): void {
    for (const [key, page] of this.#pages) if (page.ledgerId === ledgerId) this.#drop(key, page);
  }

  #drop(key: string, page: FollowedPage): void {
    this.#pages.delete(key);
    this.#bytes -= page.bytes;
    this.#memory.release(page.bytes);
  }
}

/** A page without events, which is not among the pages of a node. */
export function pageFrom(ledgerId: string, first: number): FollowedPage {
  return { ledgerId, first, events: [], reading: null, bytes: 0 };
}

function keyOf(ledgerId: string, seq: number): string {
  return `${ledgerId} ${Math.floor(seq / pageSeqs)}`;
}
