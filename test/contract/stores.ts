import type { Stores } from '../../src/store/stores.ts';

export type OpenStores = Pick<Stores, 'ledgers' | 'records'>;

/** Milliseconds since 1970, as the stores see them; a test moves it. */
export interface TestClock {
  nowMs: number;
}

/** How the contract opens one kind of store. */
export interface StoreFactory<T extends OpenStores = OpenStores> {
  /** Stores without data. */
  open(clock: TestClock): Promise<T>;
  /** The same data as a new process finds it. The stores opened before are gone. */
  reopen(): Promise<T>;
  /** Deletes a row of the log without the store, then opens the store anew. */
  loseRow(ledgerId: string, seq: number): Promise<T>;
  close(): Promise<void>;
}
