import { afterAll, beforeAll, describe } from 'vitest';
import { appendContract } from './ledger-append.contract.ts';
import { readContract } from './ledger-read.contract.ts';
import { recordContract } from './record-store.contract.ts';
import type { OpenStores, StoreFactory, TestClock } from './stores.ts';

/**
 * The contracts of LedgerStore and RecordStore, for one kind of store. The tests share one data set and use ids of
 * their own.
 */
export function storeContract(name: string, makeFactory: () => StoreFactory): void {
  describe(name, () => {
    const inner = makeFactory();
    const clock: TestClock = { nowMs: Date.UTC(2026, 10, 21) };
    let opened: OpenStores | null = null;
    const stores = () => {
      if (opened === null) throw new Error('The stores are not open');
      return opened;
    };
    // A test that reopens gets the new stores, and so does every test after it.
    const keep = async (stores: Promise<OpenStores>) => {
      opened = await stores;
      return opened;
    };
    const factory: StoreFactory = {
      open: (clock) => keep(inner.open(clock)),
      reopen: () => keep(inner.reopen()),
      loseRow: (ledgerId, seq) => keep(inner.loseRow(ledgerId, seq)),
      close: () => inner.close(),
    };
    beforeAll(async () => {
      await factory.open(clock);
    });
    afterAll(() => factory.close());

    describe('LedgerStore, writing', () => appendContract(stores, factory));
    describe('LedgerStore, reading', () => readContract(stores, factory, clock));
    describe('RecordStore', () => recordContract(stores, factory));
  });
}
