import { parseOrigin } from '../../domain/log/origin.ts';
import { subtreeHash, tileRoot } from '../../domain/log/subtree-hash.ts';
import { hashesNeeded, TILE_HASHES } from '../../domain/log/tiles.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { LogRows } from '../../service/proofs/log-rows.ts';
import type { Log } from '../../service/proofs/proven-logs.ts';
import { LedgerReading } from '../../service/reading/ledger-reading.ts';
import { unboundedWalk } from '../../service/walking/walk.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';

/** Hashes above level 0 that are kept: all those of 25 million events, in some 40 MB. */
const hashesKeptMax = 100_000;
/** Tiles of leaves that are kept, some 50 KB each: the values of one tile may be read one after the other. */
const tilesKeptMax = 64;
const sizesKeptMax = 10_000;

/** A log whose rows are read. */
export interface ExpectedLog extends Log {
  readonly origin: string;
}

/**
 * The trees that the logs of a store should have, computed from its rows. The memory is bounded: what was not kept is
 * computed again. Every method throws LedgerError `unavailable`, with the reason `broken_row` for an event that is
 * missing or damaged, and UnreadableRecord for damage beside the log.
 */
export class ExpectedTrees {
  readonly #ledgers: LedgerStore;
  readonly #rows: LogRows;
  readonly #reading: LedgerReading;
  readonly #walk = unboundedWalk();
  readonly #sizes = new RecentMap<string, number>(sizesKeptMax);
  readonly #tiles = new RecentMap<string, Promise<readonly Uint8Array[]>>(tilesKeptMax);
  readonly #hashes = new RecentMap<string, Promise<Uint8Array>>(hashesKeptMax);

  constructor(ledgers: LedgerStore, now: () => number) {
    this.#ledgers = ledgers;
    this.#rows = new LogRows(ledgers);
    this.#reading = new LedgerReading(ledgers, now);
  }

  /** null if the store has no such ledger or master, or if this is no origin of a log. */
  async logOf(origin: string): Promise<ExpectedLog | null> {
    const parsed = parseOrigin(origin);
    if (parsed === null) return null;
    const { kind, id } = parsed;
    if (kind === 'ledger') return { kind, id, ledgerId: id, origin };
    const facts = await this.#reading.masterFacts(id);
    return facts === null ? null : { kind, id, ledgerId: facts.ledgerId, origin };
  }

  /** Whether the log has so many leaves. */
  async reaches(log: ExpectedLog, size: number): Promise<boolean> {
    if (size <= (this.#sizes.get(log.origin) ?? 0)) return true;
    if (size <= (await this.#readSize(log))) return true;
    // It may have grown meanwhile, or be written to at this moment.
    const certain = await this.#ledgers.certainHead(log.ledgerId);
    return size <= (await this.#keepSize(log, certain?.seq ?? -1));
  }

  async #readSize(log: ExpectedLog): Promise<number> {
    const head = await this.#ledgers.head(log.ledgerId);
    return this.#keepSize(log, head?.seq ?? -1);
  }

  async #keepSize(log: ExpectedLog, headSeq: number): Promise<number> {
    const size = log.kind === 'ledger' ? headSeq + 1 : await this.#rows.masterSize(log, headSeq + 1, this.#walk);
    this.#sizes.set(log.origin, size);
    return size;
  }

  /** The log must reach as far as this hash. */
  async hash(log: ExpectedLog, level: number, position: number): Promise<Uint8Array> {
    if (level > 0) return this.#above(log, level, position);
    const index = Math.floor(position / TILE_HASHES);
    const leaf = (await this.#leaves(log, index))[position - index * TILE_HASHES];
    if (leaf === undefined) throw new RangeError(`the log of ${log.origin} has no leaf ${position}`);
    return leaf;
  }

  /** The root of the first `size` leaves, which the log must have. */
  async root(log: ExpectedLog, size: number): Promise<Uint8Array> {
    const whole = { from: 0, to: size };
    const { tiles, rows } = hashesNeeded([whole], size);
    const hashes = new Map<string, Uint8Array>();
    const take = async (level: number, from: number, to: number) => {
      for (let at = from; at < to; at += 1) hashes.set(`${level}/${at}`, await this.hash(log, level, at));
    };
    for (const { level, index, hashes: count } of tiles)
      await take(level, index * TILE_HASHES, index * TILE_HASHES + count);
    if (rows !== null) await take(0, rows.from, rows.to);
    return subtreeHash(whole, (level, position) => {
      const hash = hashes.get(`${level}/${position}`);
      if (hash === undefined) throw new RangeError(`no hash was computed at level ${level}, position ${position}`);
      return hash;
    });
  }

  #above(log: ExpectedLog, level: number, position: number): Promise<Uint8Array> {
    const key = `${log.origin}/${level}/${position}`;
    const known = this.#hashes.get(key) ?? this.#computeAbove(log, level, position);
    this.#hashes.set(key, known);
    return known;
  }

  async #computeAbove(log: ExpectedLog, level: number, position: number): Promise<Uint8Array> {
    if (level === 1) return tileRoot(await this.#leaves(log, position));
    const below: Uint8Array[] = [];
    for (let at = 0; at < TILE_HASHES; at += 1)
      below.push(await this.#above(log, level - 1, position * TILE_HASHES + at));
    return tileRoot(below);
  }

  /** The leaves of a tile of level 0, as far as the log is known to reach. */
  async #leaves(log: ExpectedLog, index: number): Promise<readonly Uint8Array[]> {
    const from = index * TILE_HASHES;
    const size = this.#sizes.get(log.origin) ?? (await this.#readSize(log));
    const to = Math.min(from + TILE_HASHES, size);
    const key = `${log.origin}/${from}/${to}`;
    const known = this.#tiles.get(key) ?? this.#rows.leaves(log, { from, to }, this.#walk);
    this.#tiles.set(key, known);
    return known;
  }
}
