import { LedgerError } from '../../domain/errors.ts';
import { type HashSource, tileRoot } from '../../domain/log/subtree-hash.ts';
import { hashesNeeded, levelSize, TILE_HASHES, type TilePart } from '../../domain/log/tiles.ts';
import type { Subtree } from '../../domain/log/tree.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { TileStore } from '../../store/tile-store.ts';
import { unboundedWalk, type Walk } from '../walking/walk.ts';
import { isBrokenRow, type LogRows } from './log-rows.ts';
import type { Log } from './proven-logs.ts';

/** Tiles of level 0 that one call makes itself. For more it starts the work and is refused. */
const tilesPerCallMax = 16;
/** Tiles of level 0 that are made at once, over all logs. Of each log at most one waits. */
const places = { perCaller: 1, total: 4 };
/** Logs whose trees are made in the background, or wait for it. Calls for further ones start nothing. */
const buildingMax = 1_000;
/** A master's tail of more rows than this is stored, because its rows lie scattered over the ledger. */
const scatteredRowsMax = 16;
/** Logs whose leaves behind the last full tile are kept in memory: 20 MiB, at 80 KB each. */
const tailsKeptMax = 256;
/** When a call for a tree that is being made may be sent again, s. */
const retryAfterS = 2;

/** A log with its origin, which names its tiles. */
export interface NamedLog extends Log {
  readonly origin: string;
}

/** The first hashes of a tile of level 0. */
interface Tail {
  readonly index: number;
  readonly hashes: readonly Uint8Array[];
}

interface LogTreesParts {
  readonly tiles: TileStore;
  readonly rows: Pick<LogRows, 'leaves'>;
  readonly meter: TreeMeter;
}

interface TreeMeter {
  /** Tiles of level 0 that were made from events. */
  tilesWritten(count: number): void;
  /** Making the tree of a log in the background has failed. */
  buildingFailed(origin: string, error: unknown): void;
}

/**
 * Hashes of the trees of logs. They are read from stored tiles; what is missing there is computed from the events and
 * stored. Only events that are certain may be covered: nothing that is stored is ever wrong then.
 *
 * Invariant: at most one piece of work at a time makes tiles of one log.
 */
export class LogTrees {
  readonly #parts: LogTreesParts;
  readonly #places = new FairPlaces(places);
  /** By origin: held by the work that makes tiles of the log. */
  readonly #mutex = new KeyedMutex(null);
  /** Origins of logs whose trees are made in the background, which takes long. */
  readonly #building = new Set<string>();
  /** Origins of logs whose last tiles are made in the background. Calls wait for that. */
  readonly #filling = new Set<string>();
  /** By origin: what was read of the last tile of level 0 while it was not full. */
  readonly #tails = new RecentMap<string, Tail>(tailsKeptMax);
  #forgotten = 0;

  constructor(parts: LogTreesParts) {
    this.#parts = parts;
  }

  /**
   * Finds the hashes that subtreeHash reads for these subtrees of a tree of `size`, all of whose leaves are certain.
   * Throws LedgerError `unavailable` with the reason `broken_row`, or `tree_building` if more tiles have to be made
   * than one call may make.
   */
  async hashes(log: NamedLog, subtrees: readonly Subtree[], size: number, walk: Walk): Promise<HashSource> {
    const needed = hashesNeeded(subtrees, size);
    const found = new Map<string, readonly Uint8Array[]>();
    const lacking: TilePart[] = [];
    let stored = 0;
    for (const part of needed.tiles) {
      const hashes = await walk.readOne(() => this.#parts.tiles.tile(log.origin, part.level, part.index));
      stored += Math.min(hashes.length, part.hashes);
      if (hashes.length < part.hashes) lacking.push(part);
      else found.set(nameOf(part), hashes);
    }
    if (lacking.length > 0) {
      const percent = Math.floor((stored / needed.tiles.reduce((sum, { hashes }) => sum + hashes, 0)) * 100);
      for (const [part, hashes] of await this.#makeNow(log, lacking, percent, walk)) found.set(nameOf(part), hashes);
    }
    if (needed.rows !== null) {
      const index = Math.floor(needed.rows.from / TILE_HASHES);
      const tail = await this.#tail(log, index, needed.rows.to - index * TILE_HASHES, walk);
      found.set(nameOf({ level: 0, index }), tail);
    }
    return (level, position) => {
      const index = Math.floor(position / TILE_HASHES);
      const hash = found.get(nameOf({ level, index }))?.[position - index * TILE_HASHES];
      if (hash === undefined) throw new RangeError(`no hash was asked for at level ${level}, position ${position}`);
      return hash;
    };
  }

  /**
   * Makes the last full tiles of the first `size` leaves in the background. Earlier ones are made when they are needed.
   */
  fill(log: NamedLog, size: number): void {
    this.#makeInBackground(this.#filling, log, (maker) => maker.fill(size));
  }

  /** Forgets what is kept in memory of a log whose events may be others now. */
  forget({ origin }: NamedLog): void {
    // Reads under way, of this log and others, keep nothing then.
    this.#forgotten += 1;
    this.#tails.delete(origin);
  }

  /**
   * Replaces the stored tiles of the first `certain` leaves by what the events say, in the background. They must be
   * right up to `needed`; at a broken row behind that it stops. null: this cannot begin now, since this tree or too
   * many others are being made.
   */
  remake(log: NamedLog, needed: number, certain: number): Promise<void> | null {
    this.forget(log);
    return this.#makeInBackground(this.#building, log, async (maker) => {
      await maker.remake(needed, certain);
      // Also what a call has read of a wrong tile meanwhile.
      this.forget(log);
    });
  }

  async #makeNow(log: NamedLog, parts: readonly TilePart[], percent: number, walk: Walk) {
    if (this.#building.has(log.origin)) throw treeBuilding(percent);
    try {
      return await this.#mutex.take(log.origin, 'write', async () => {
        const maker = this.#maker(log, walk, tilesPerCallMax);
        const made: [TilePart, readonly Uint8Array[]][] = [];
        for (const part of parts) made.push([part, await maker.complete(part.level, part.index, part.hashes)]);
        return made;
      });
    } catch (error) {
      if (!(error instanceof TooManyTiles)) throw error;
      this.#makeInBackground(this.#building, log, async (maker) => {
        for (const part of parts) await maker.complete(part.level, part.index, part.hashes);
      });
      throw treeBuilding(percent);
    }
  }

  /** `origins`: the logs for which such work is under way. For these, nothing is started: null. */
  #makeInBackground(
    origins: Set<string>,
    log: NamedLog,
    work: (maker: TileMaker) => Promise<void>,
  ): Promise<void> | null {
    if (origins.has(log.origin) || origins.size >= buildingMax) return null;
    origins.add(log.origin);
    const made = this.#mutex
      .take(log.origin, 'write', () => work(this.#maker(log, unboundedWalk(), Number.POSITIVE_INFINITY)))
      .finally(() => origins.delete(log.origin));
    made.catch((error: unknown) => this.#parts.meter.buildingFailed(log.origin, error));
    return made;
  }

  #maker(log: NamedLog, walk: Walk, tilesMax: number): TileMaker {
    return new TileMaker({ ...this.#parts, places: this.#places, log, walk, tilesMax });
  }

  /** The first `count` hashes, at least, of the last tile of level 0. It may be full at a larger size than the call's. */
  async #tail(log: NamedLog, index: number, count: number, walk: Walk): Promise<readonly Uint8Array[]> {
    const { rows, tiles } = this.#parts;
    const forgotten = this.#forgotten;
    const kept = this.#tails.get(log.origin);
    if (kept?.index === index && kept.hashes.length >= count) return kept.hashes;
    const stored = await walk.readOne(() => tiles.tile(log.origin, 0, index));
    if (stored.length >= count) return stored;
    const known = kept?.index === index && kept.hashes.length > stored.length ? kept.hashes : stored;
    const first = index * TILE_HASHES;
    const leaves = await rows.leaves(log, { from: first + known.length, to: first + count }, walk);
    const hashes = [...known, ...leaves];
    const unstored = hashes.slice(stored.length);
    const isScattered = log.kind === 'master' && unstored.length > scatteredRowsMax;
    if (isScattered) await tiles.putHashes(log.origin, 0, first + stored.length, unstored);
    if (this.#forgotten === forgotten && this.#tails.get(log.origin) === kept)
      this.#tails.set(log.origin, { index, hashes });
    return hashes;
  }
}

interface TileMakerParts extends LogTreesParts {
  readonly places: FairPlaces;
  readonly log: NamedLog;
  readonly walk: Walk;
  /** Tiles of level 0 to make at most. */
  readonly tilesMax: number;
}

/** One piece of work that makes tiles of one log. */
class TileMaker {
  readonly #parts: TileMakerParts;
  #tilesMade = 0;

  constructor(parts: TileMakerParts) {
    this.#parts = parts;
  }

  /** Completes the last tile of each level. */
  async fill(size: number): Promise<void> {
    for (let level = 1; levelSize(level, size) > 0; level += 1) {
      const hashes = levelSize(level, size);
      const index = Math.floor((hashes - 1) / TILE_HASHES);
      await this.complete(level, index, hashes - index * TILE_HASHES);
    }
  }

  /** Makes all tiles anew. Stops at a broken row at `needed` or behind it, and throws at an earlier one. */
  async remake(needed: number, certain: number): Promise<void> {
    let to = certain;
    for (let index = 0; index < levelSize(1, to); index += 1) {
      try {
        await this.#makeLeaves(index);
      } catch (error) {
        if (!isBrokenRow(error) || (index + 1) * TILE_HASHES <= needed) throw error;
        to = Math.max(needed, index * TILE_HASHES);
      }
    }
    // In one write for each tile, so that no other node finds some of these hashes right and others wrong.
    for (let level = 1; levelSize(level, to) > 0; level += 1) {
      const hashes = levelSize(level, to);
      for (let index = 0; index * TILE_HASHES < hashes; index += 1)
        await this.#makeAbove(level, index, 0, Math.min(TILE_HASHES, hashes - index * TILE_HASHES));
    }
    try {
      await this.#remakeTail(to);
    } catch (error) {
      if (!isBrokenRow(error) || to === needed) throw error;
      if (levelSize(1, needed) === levelSize(1, to)) await this.#remakeTail(needed);
    }
  }

  /** Makes anew what is stored of the last tile of level 0, which is not full at this size. */
  async #remakeTail(size: number): Promise<void> {
    const { tiles, rows, log, walk } = this.#parts;
    const index = levelSize(1, size);
    const from = index * TILE_HASHES;
    if (from === size) return;
    const stored = await tiles.tile(log.origin, 0, index);
    // A call for a larger size may have filled it meanwhile.
    if (stored.length === TILE_HASHES) await this.#makeLeaves(index);
    else if (stored.length > 0) {
      const leaves = await rows.leaves(log, { from, to: Math.min(from + stored.length, size) }, walk);
      await tiles.putHashes(log.origin, 0, from, leaves);
    }
  }

  /** Returns at least the first `count` hashes of a tile, all of whose leaves are certain. Throws TooManyTiles. */
  async complete(level: number, index: number, count: number): Promise<readonly Uint8Array[]> {
    const { tiles, log, walk } = this.#parts;
    const stored = await walk.readOne(() => tiles.tile(log.origin, level, index));
    if (stored.length >= count) return stored;
    if (level === 0) return this.#makeLeaves(index);
    return [...stored, ...(await this.#makeAbove(level, index, stored.length, count))];
  }

  /** Makes the hashes `from` to `count` (excluded) of a tile above level 0. */
  async #makeAbove(level: number, index: number, from: number, count: number): Promise<Uint8Array[]> {
    const { tiles, log, walk } = this.#parts;
    const first = index * TILE_HASHES + from;
    const hashes: Uint8Array[] = [];
    try {
      for (let at = from; at < count; at += 1) {
        const below = await this.complete(level - 1, index * TILE_HASHES + at, TILE_HASHES);
        const wait = walk.whenFree();
        if (wait !== null) await wait;
        walk.use(1, 0);
        hashes.push(tileRoot(below));
      }
    } finally {
      // Also what was made before a failure, or before the call had made enough.
      if (hashes.length > 0) await tiles.putHashes(log.origin, level, first, hashes);
    }
    return hashes;
  }

  async #makeLeaves(index: number): Promise<readonly Uint8Array[]> {
    const { tiles, rows, places, log, walk, tilesMax, meter } = this.#parts;
    if (this.#tilesMade >= tilesMax) throw new TooManyTiles();
    this.#tilesMade += 1;
    const from = index * TILE_HASHES;
    const waits = places.take(log.origin, walk.signal, () => treeBuilding(0));
    if (waits !== null) await waits;
    try {
      const leaves = await rows.leaves(log, { from, to: from + TILE_HASHES }, walk);
      await tiles.putHashes(log.origin, 0, from, leaves);
      meter.tilesWritten(1);
      return leaves;
    } finally {
      places.leave(log.origin);
    }
  }
}

class TooManyTiles extends Error {}

function nameOf({ level, index }: Pick<TilePart, 'level' | 'index'>): string {
  return `${level}/${index}`;
}

/** `percent`: the share of the hashes that the proof needs that is there. */
export function treeBuilding(percent: number): LedgerError {
  const message = `The tree of this log is being made from its events, and ${percent} per cent of what this proof needs is there: retry in a few seconds.`;
  return new LedgerError('unavailable', message, { reason: 'tree_building', retry_after_s: retryAfterS });
}
