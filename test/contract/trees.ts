import type { SignedHeads } from '../../src/store/signed-heads.ts';
import type { TreeInspection } from '../../src/store/store-inspection.ts';
import type { HashPlace, TileStore } from '../../src/store/tile-store.ts';

export interface TreeStores {
  readonly tiles: TileStore;
  readonly signedHeads: SignedHeads;
}

/**
 * How the contract of the trees opens one kind of store. What plants a value behind the store's back returns the stores
 * that find it, which may be opened anew.
 */
export interface TreeFactory {
  open(): Promise<TreeStores>;
  /** The same data as a new process finds it. */
  reopen(): Promise<TreeStores>;
  /** The value in which the store keeps the hash of a place, read without the store. */
  storedHash(place: HashPlace): Promise<Buffer>;
  /** Puts a value there, without the store. */
  plantHash(place: HashPlace, value: Buffer): Promise<TreeStores>;
  storedHead(origin: string): Promise<Buffer>;
  plantHead(origin: string, value: Buffer): Promise<TreeStores>;
  close(): Promise<void>;
}

/** A kind of store whose trees can be inspected. */
export interface InspectedTreeFactory extends TreeFactory {
  /** Runs `work` with an inspection that may remove values. Returns the stores as they are afterwards. */
  inspect(work: (trees: TreeInspection) => Promise<void>): Promise<TreeStores>;
}
