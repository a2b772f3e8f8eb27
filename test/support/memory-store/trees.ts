import {
  formatSignedHead,
  parseSignedHead,
  readSignedHead,
  type SignedHead,
  type SignedHeads,
} from '../../../src/store/signed-heads.ts';
import type { TreeInspection } from '../../../src/store/store-inspection.ts';
import { type HashPlace, type TileStore, tileHashes } from '../../../src/store/tile-store.ts';
import { formatHashes, parseHashes, tellUnfit } from '../../../src/store/tile-value.ts';
import { checkHashes, checkSignedHead } from '../../../src/store/write-checks.ts';

/**
 * The data of memory tile stores and signed heads: stored values by the name of their place, and by origin. Several
 * stores over one of these behave like several nodes over one database. Tests may damage the values.
 */
export interface MemoryTreeData {
  readonly hashes: Map<string, Buffer>;
  readonly heads: Map<string, { readonly size: number; readonly value: Buffer }>;
}

export function emptyTreeData(): MemoryTreeData {
  return { hashes: new Map(), heads: new Map() };
}

/** The key of a hash in the data. */
export function nameOfPlace({ owner, level, position }: HashPlace): string {
  return JSON.stringify([owner, level, position]);
}

/** Tiles in memory, for tests, a value for each hash. */
export class MemoryTileStore implements TileStore {
  readonly #data: MemoryTreeData;

  constructor(data: MemoryTreeData = emptyTreeData()) {
    this.#data = data;
  }

  async tile(owner: string, level: number, index: number): Promise<Buffer[]> {
    await later();
    const found: Buffer[] = [];
    while (found.length < tileHashes) {
      const place = { owner, level, position: index * tileHashes + found.length };
      const value = this.#data.hashes.get(nameOfPlace(place));
      if (value === undefined) break;
      const hash = parseHashes(place, value);
      if (hash === null) {
        tellUnfit(place);
        break;
      }
      found.push(Buffer.from(hash));
    }
    return found;
  }

  async putHashes(owner: string, level: number, from: number, hashes: readonly Uint8Array[]): Promise<void> {
    checkHashes({ owner, level, position: from }, hashes);
    const values = hashes.map((hash, at) => {
      const place = { owner, level, position: from + at };
      return [nameOfPlace(place), formatHashes(place, hash)] as const;
    });
    await later();
    for (const [name, value] of values) this.#data.hashes.set(name, value);
    await later();
  }
}

/** Signed heads in memory, for tests. */
export class MemorySignedHeads implements SignedHeads {
  readonly #data: MemoryTreeData;

  constructor(data: MemoryTreeData = emptyTreeData()) {
    this.#data = data;
  }

  async get(origin: string): Promise<SignedHead | null> {
    await later();
    const stored = this.#data.heads.get(origin);
    return stored === undefined ? null : readSignedHead(origin, stored.value);
  }

  async raise(origin: string, size: number, root: Uint8Array): Promise<void> {
    checkSignedHead(origin, size, root);
    const value = formatSignedHead(origin, size, root);
    await later();
    if (size > (this.#data.heads.get(origin)?.size ?? 0)) this.#data.heads.set(origin, { size, value });
    await later();
  }
}

/** Waits for a microtask, because no real store answers synchronously. */
function later(): Promise<void> {
  return Promise.resolve();
}

/** The trees as a scrub reads them. */
export function memoryTreeInspection(data: MemoryTreeData): TreeInspection {
  return {
    async *hashes() {
      for (const [name, value] of [...data.hashes]) {
        const [owner, level, position] = JSON.parse(name) as [string, number, number];
        const hash = parseHashes({ owner, level, position }, value);
        const remove = async () => {
          if (data.hashes.get(name) === value) data.hashes.delete(name);
        };
        const hashes = hash === null ? null : [hash];
        yield { found: { table: 'hashes', key: name, owner, level, position, hashes, remove }, share: 0 };
      }
    },
    async *signedHeads() {
      for (const [origin, { value }] of data.heads) yield { origin, head: parseSignedHead(origin, value) };
    },
  };
}
