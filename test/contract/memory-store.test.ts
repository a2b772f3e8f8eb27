import { datedAppends } from '../../src/node/dated-appends.ts';
import { sealedSnapshots } from '../../src/service/records/sealed-snapshots.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { emptyLedgerData, ledgerIn } from '../support/memory-store/ledger-data.ts';
import { MemoryLedgerStore } from '../support/memory-store/ledger-store.ts';
import { emptyRecordData, MemoryRecordStore } from '../support/memory-store/record-store.ts';
import { faultyLedgerStore, scriptedFaults } from '../support/store-faults.ts';
import { storeContract } from './store.contract.ts';
import type { StoreFactory, TestClock } from './stores.ts';

function memoryFactory(wrap: (ledgers: LedgerStore) => LedgerStore = (ledgers) => ledgers): StoreFactory {
  const ledgerData = emptyLedgerData();
  const recordData = emptyRecordData();
  let clock: TestClock = { nowMs: 0 };
  const open = async () => ({
    ledgers: wrap(new MemoryLedgerStore(() => clock.nowMs, ledgerData)),
    records: new MemoryRecordStore(recordData),
  });
  return {
    open(given) {
      clock = given;
      return open();
    },
    reopen: open,
    loseRow(ledgerId, seq) {
      ledgerIn(ledgerData, ledgerId).entries.delete(seq);
      return open();
    },
    close: async () => {},
  };
}

storeContract('memory stores', memoryFactory);

/** The ledger store that a node gives its actors. */
function asActorsSeeIt(ledgers: LedgerStore): LedgerStore {
  return sealedSnapshots(
    datedAppends(ledgers, () => true),
    Buffer.alloc(32, 7),
    () => {},
  );
}

storeContract('memory stores behind the wrappers of a node', () => memoryFactory(asActorsSeeIt));
storeContract('memory stores behind injected faults, of which none comes', () =>
  memoryFactory((ledgers) => faultyLedgerStore(ledgers, scriptedFaults().choose)),
);
