import { commandKeyLifeMs } from '../../domain/event/event.ts';
import { sha256Hex, sha256HexForm } from '../../domain/keys/hash.ts';
import type { CommandKeyRef, Head, LedgerEntry } from '../../store/ledger-store.ts';

/** A key counts by the clock that dates events. That clock may be corrected, so keys are kept for an hour more. */
const keptMs = commandKeyLifeMs + 60 * 60_000;
/**
 * How long a filter is filled, full or not. A filter is dropped as a whole, when the newest of its keys has expired.
 */
const filterMs = 5 * 60 * 60_000;
/** Bits for each key, and how many of them a key sets. A full filter then has one false positive in 1,000 keys. */
const bitsPerKey = 16;
const bitsSet = 6;
const filterKeysMin = 512;
/** The filter after a full one is larger by this factor. */
const growth = 4;
const filterKeysMax = 2_097_152;

/** A memory budget in bytes. */
interface RecentKeysBudget {
  /** Takes memory for a ledger that already holds `held` bytes. Returns whether there was enough. */
  take(bytes: number, held: number): boolean;
  giveBack(bytes: number): void;
}

/** A Bloom filter: it finds every key that was added, and a few that were not. */
interface Filter {
  readonly bits: Uint32Array;
  readonly keysMax: number;
  readonly begunMs: number;
  keys: number;
  newestMs: number;
}

/**
 * What this process knows of the keys of a ledger's commands, so that it need not look up each key in the store. It has
 * seen every key that counts if the ledger began here, or if no other node has written to the ledger for longer than a
 * key counts.
 *
 * The knowledge is valid while the ledger ends in the event that was written here last. The store compares that end
 * before it accepts a write, and a write by another node moves it. So the knowledge outlives the ledger's actor.
 * Permanent keys are always looked up.
 *
 * Times are monotonic, in milliseconds: how a wall clock is set says nothing about how long this node has been writing.
 */
export class RecentKeys {
  readonly #budget: RecentKeysBudget;
  /** The keys of every event since then are known. Infinity: none are. */
  #since = Number.POSITIVE_INFINITY;
  /**
   * The hash of the newest event, and the hash of the newest event once the running write stands. '' before the first
   * event.
   */
  #end = '';
  #sentEnd: string | null = null;
  /** Oldest first. */
  #filters: Filter[] = [];

  constructor(budget: RecentKeysBudget) {
    this.#budget = budget;
  }

  /**
   * This node has claimed the ledger, which ends in `head` (null: no event). The knowledge stays valid if it ends there
   * too.
   */
  claimed(head: Head | null, nowMs: number): void {
    const end = head?.hash ?? '';
    if (this.#since === Number.POSITIVE_INFINITY || (end !== this.#end && end !== this.#sentEnd)) {
      this.release();
      this.#since = head === null ? Number.NEGATIVE_INFINITY : nowMs;
    }
    this.#end = end;
    this.#sentEnd = null;
  }

  /** Entries are on their way to the store. `stood` or `claimed` tells whether they were written. */
  sent(entries: readonly LedgerEntry[], nowMs: number): void {
    this.#sentEnd = entries.at(-1)?.hash ?? null;
    // Knowledge that was dropped to save memory is collected anew from here on.
    if (this.#since === Number.POSITIVE_INFINITY) this.#since = nowMs;
    for (const { projections } of entries)
      for (const projection of projections)
        if (projection.kind === 'command' && !projection.command.permanent) this.#add(projection.command.id, nowMs);
  }

  /** The entries that were sent are written. */
  stood(): void {
    this.#end = this.#sentEnd ?? this.#end;
    this.#sentEnd = null;
  }

  /**
   * Whether no event of the ledger has this key, or only events for which the key has expired. Valid only if the ledger
   * ends in `end`: the caller decides on it and then has the store confirm that end. false also means unknown.
   */
  isNew({ id, permanent }: CommandKeyRef, end: string, nowMs: number): boolean {
    if (permanent || end !== this.#end || this.#since > nowMs - keptMs) return false;
    const [first, step] = hashesOf(id);
    return !this.#filters.some((filter) => holds(filter, first, step));
  }

  /** Gives all memory back and forgets everything. */
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
    filter.keys += 1;
    filter.newestMs = nowMs;
  }

  /**
   * Returns null if the ledger or the node already holds too much. Then everything known of this ledger was dropped.
   */
  #filterToFill(nowMs: number): Filter | null {
    // It was dropped in the middle of a batch.
    if (this.#since === Number.POSITIVE_INFINITY) return null;
    const newest = this.#filters.at(-1);
    const isFull = newest !== undefined && newest.keys === newest.keysMax;
    if (newest !== undefined && !isFull && newest.begunMs > nowMs - filterMs) return newest;
    this.#dropOld(nowMs);
    const keysMax = filterSizeFor(isFull ? newest.keys * growth : (newest?.keys ?? 0));
    const bytes = (keysMax * bitsPerKey) / 8;
    const held = this.#filters.reduce((sum, { bits }) => sum + bits.byteLength, 0);
    if (!this.#budget.take(bytes, held)) {
      this.release();
      return null;
    }
    const filter: Filter = { bits: new Uint32Array(bytes / 4), keysMax, begunMs: nowMs, keys: 0, newestMs: nowMs };
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

/** The smallest of the filter sizes that holds this many keys, or the largest size. */
function filterSizeFor(keys: number): number {
  let size = filterKeysMin;
  while (size < keys && size < filterKeysMax) size *= growth;
  return size;
}

function holds(filter: Filter, first: number, step: number): boolean {
  for (let n = 0; n < bitsSet; n++) {
    const bit = bitOf(filter, first, step, n);
    if (((filter.bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
  }
  return true;
}

/** The nth bit of an id (double hashing: Kirsch and Mitzenmacher, Less Hashing, Same Performance, 2006). */
function bitOf({ bits }: Filter, first: number, step: number, n: number): number {
  return ((first + n * step) >>> 0) & (bits.length * 32 - 1);
}

/** Two 32-bit hashes of an id. Most ids are digests, so that they need no hashing. */
function hashesOf(id: string): readonly [first: number, step: number] {
  const hex = sha256HexForm.test(id) ? id : sha256Hex(id);
  return [Number.parseInt(hex.slice(0, 8), 16), Number.parseInt(hex.slice(8, 16), 16) | 1];
}
