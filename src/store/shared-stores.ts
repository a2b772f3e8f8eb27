import type { StoreStamp } from './store-stamp.ts';
import type { Stores } from './stores.ts';

/** The stores that all nodes of a cluster share, and what a cluster asks of them besides. */
export interface SharedStores extends Stores, AsyncDisposable {
  readonly stamp: StoreStamp;
  /** Into how many shards the ledgers are divided: fixed when `schema apply` made the schema. Throws StartError. */
  shardCount(): Promise<number>;
  /**
   * The time of the store's clock, milliseconds since 1970. Nodes compare their clocks with it, so a store without a
   * clock needs another one that all nodes can ask. Rejects while the store does not answer.
   */
  time(): Promise<number>;
  /** How many events this process has written whose projections it does not know to be written. 0 if none can lag. */
  projectionLag(): number;
  /** For health, which waits 2 s, and readiness. Throws LedgerError `unavailable` while the store does not answer. */
  check(): Promise<void>;
}
