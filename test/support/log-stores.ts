import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { openAuthority } from '../../src/service/authority/authority.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import type { StoreStamp } from '../../src/store/store-stamp.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';

export const newSigningKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey;

interface StampUnderTest extends StoreStamp {
  /** Makes the store a restored copy: of a data directory, or of a keyspace. */
  mark(storeId?: string): void;
}

export function newStamp(storeId: string | null = null): StampUnderTest {
  let isCopy = false;
  let id = storeId;
  return {
    get storeId() {
      return id;
    },
    isCopy: () => isCopy,
    clear() {
      isCopy = false;
    },
    mark(other) {
      if (other === undefined) isCopy = true;
      else id = other;
    },
  };
}

/** A store with an authority, and what a node opens its log with. */
export async function logScene(nowIso = '2026-11-26T00:00:00.000Z', storeId: string | null = null) {
  const records: RecordStore = new MemoryRecordStore();
  const [authorityKey, logKey] = [newSigningKey(), newSigningKey()];
  const authority = await openAuthority(records, authorityKey, nowIso);
  const stamp = newStamp(storeId);
  let drawn = 0;
  const random = (bytes: number) => Buffer.alloc(bytes, ++drawn);
  const parts = { records, stamp, logKey, authorityKey, origin: null as string | null, nowIso, random };
  return { ...parts, parts, authority };
}
