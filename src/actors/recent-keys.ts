import { commandKeyLifeMs } from '../domain/event.ts';
import { sha256Hex, sha256HexForm } from '../domain/hash.ts';
import type { Head, LedgerEntry, MarkName } from '../store/ledger-store.ts';

/** A mark counts by the clock that its event is dated by: an hour more, since that one may be corrected. */
const keptMs = commandKeyLifeMs + 60 * 60_000;
/** How long a filter is filled, full or not: it is given back as a whole, when the last of its marks counts no more. */
const filterMs = 5 * 60 * 60_000;
/** Bits for a mark, of which each sets some: then a full filter takes one of 1,000 marks for one of its own that is not. */
const bitsPerMark = 16;
const bitsSet = 6;
const filterMarksMin = 512;
/** What follows a full filter is so many times as large. */
const growth = 4;
const filterMarksMax = 2_097_152;

/** Memory, counted in bytes. */
export interface RecentKeysBudget {
  /** Whether there are so many left for a ledger that has `held` already; they are the caller's then. */
  take(bytes: number, held: number): boolean;
  giveBack(bytes: number): void;
}

/** A Bloom filter: what was added is found, and a little that was not. */
interface Filter {
  readonly bits: Uint32Array;
  readonly marksMax: number;
  readonly begunMs: number;
  marks: number;
  newestMs: number;
}

/**
 * What this process knows of the marks of a ledger's commands, so that it need not look for each one in the store: of a ledger that began here, or that nobody else
 * has written to for longer than a mark counts, it has seen every mark that counts. It holds for as long as the ledger ends in the event that was written
 * here last, which is what the store compares before it takes another one: whoever else wrote has moved the end. So it outlives the ledger's actor. Permanent
 * marks are always looked for.
 *
 * Times are monotonic, in milliseconds: what a clock is set to says nothing of how long this node has been writing.
 */
export class RecentKeys {
  readonly #budget: RecentKeysBudget;
  /** The marks of every event since then are known. Infinity: nothing is. */
  #since = Number.POSITIVE_INFINITY;
  /** Hashes of the newest event, and of the one that it is once what was sent stands; '' before the first event. */
  #end = '';
  #sentEnd: string | null = null;
  /** From the oldest on. */
  #filters: Filter[] = [];

  constructor(budget: RecentKeysBudget) {
    this.#budget = budget;
  }

  /** The ledger is this node's, and ends in `head`. What is known still holds where that is its own end. */
  claimed(head: Head | null, nowMs: number): void {
    const end = head?.hash ?? '';
    if (this.#since === Number.POSITIVE_INFINITY || (end !== this.#end && end !== this.#sentEnd)) {
      this.release();
      this.#since = head === null ? Number.NEGATIVE_INFINITY : nowMs;
    }
    this.#end = end;
    this.#sentEnd = null;
  }

  /** Entries are on their way to the store, behind the end. Whether they get there `claimed` or `stood` tells. */
  sent(entries: readonly LedgerEntry[], nowMs: number): void {
    this.#sentEnd = entries.at(-1)?.hash ?? null;
    // What was forgotten, for want of memory, is learnt anew from here on.
    if (this.#since === Number.POSITIVE_INFINITY) this.#since = nowMs;
    for (const { projections } of entries)
      for (const projection of projections)
        if (projection.kind === 'command' && !projection.command.permanent) this.#add(projection.command.id, nowMs);
  }

  /** What was sent is there. */
  stood(): void {
    this.#end = this.#sentEnd ?? this.#end;
    this.#sentEnd = null;
  }

  /**
   * Whether no event of the ledger has this mark, or none that counts any more, as long as the ledger ends in `end`: for a decision that the store is then
   * asked to confirm.
   */
  isNew({ id, permanent }: MarkName, end: string, nowMs: number): boolean {
    if (permanent || end !== this.#end || this.#since > nowMs - keptMs) return false;
    const [first, step] = hashesOf(id);
    return !this.#filters.some((filter) => holds(filter, first, step));
  }

  /** Gives back what it holds, and knows nothing. */
  release(): void {
    for (const { bits } of this.#filters) this.#budget.giveBack(bits.byteLength);
    this.#filters = [];
    this.#since = Number.POSITIVE_INFINITY;
  }

  #add(id: string, nowMs: number): void {
    const filter = this.#filterToFill(nowMs);
    if (filter === null) return;
    const [first, step] = hashesOf(id);
    for (let n = 0; n < bitsSet; n++) {
      const bit = bitOf(filter, first, step, n);
      filter.bits[bit >>> 5] = (filter.bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
    }
    filter.marks += 1;
    filter.newestMs = nowMs;
  }

  /** null where the ledger or the node holds too much already: then nothing is known of this ledger. */
  #filterToFill(nowMs: number): Filter | null {
    // Given up in the middle of a batch.
    if (this.#since === Number.POSITIVE_INFINITY) return null;
    const newest = this.#filters.at(-1);
    const isFull = newest !== undefined && newest.marks === newest.marksMax;
    if (newest !== undefined && !isFull && newest.begunMs > nowMs - filterMs) return newest;
    this.#dropOld(nowMs);
    const marksMax = filterSizeFor(isFull ? newest.marks * growth : (newest?.marks ?? 0));
    const bytes = (marksMax * bitsPerMark) / 8;
    const held = this.#filters.reduce((sum, { bits }) => sum + bits.byteLength, 0);
    if (!this.#budget.take(bytes, held)) {
      this.release();
      return null;
    }
    const filter: Filter = { bits: new Uint32Array(bytes / 4), marksMax, begunMs: nowMs, marks: 0, newestMs: nowMs };
    this.#filters.push(filter);
    return filter;
  }

  #dropOld(nowMs: number): void {
    for (let oldest = this.#filters[0]; oldest !== undefined; oldest = this.#filters[0]) {
      if (oldest.newestMs >= nowMs - keptMs) return;
      this.#budget.giveBack(oldest.bits.byteLength);
      this.#filters.shift();
    }
  }
}

/** The smallest filter that takes so many marks, of those that there are. */
function filterSizeFor(marks: number): number {
  let size = filterMarksMin;
  while (size < marks && size < filterMarksMax) size *= growth;
  return size;
}

function holds(filter: Filter, first: number, step: number): boolean {
  for (let n = 0; n < bitsSet; n++) {
    const bit = bitOf(filter, first, step, n);
    if (((filter.bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
  }
  return true;
}

/** Which bit an id sets as its nth (double hashing: Kirsch and Mitzenmacher, Less Hashing, Same Performance, 2006). */
function bitOf({ bits }: Filter, first: number, step: number, n: number): number {
  return ((first + n * step) >>> 0) & (bits.length * 32 - 1);
}

/** Two hashes of 32 bits. Ids are digests mostly, and their own hashes. */
function hashesOf(id: string): readonly [first: number, step: number] {
  const hex = sha256HexForm.test(id) ? id : sha256Hex(id);
  return [Number.parseInt(hex.slice(0, 8), 16), Number.parseInt(hex.slice(8, 16), 16) | 1];
}
