import type { StoreStamp } from './store-stamp.ts';
import type { Stores } from './stores.ts';

/** The stores that all nodes of a cluster share, and what a cluster asks of them besides. */
export interface SharedStores extends Stores, AsyncDisposable {
  readonly stamp: StoreStamp;
  /** Into how many shards the ledgers are divided: fixed when `schema apply` made the schema. Throws StartError. */
  shardCount(): Promise<number>;
  /**
   * The time of the store's clock, milliseconds since 1970, with which nodes compare theirs. Rejects while the store
   * does not answer: a node for which this has not resolved for 10 s counts its store as lost. So an adapter that takes
   * the time from another clock, which all nodes must be able to ask, asks the store too.
   */
  time(): Promise<number>;
  /** How many events this process has written whose projections it does not know to be written. 0 if none can lag. */
  projectionLag(): number;
  /** For health, which waits 2 s, and readiness. Throws LedgerError `unavailable` while the store does not answer. */
  check(): Promise<void>;
}
