import { emptyLedgerData, ledgerIn } from '../../src/store/memory/ledger-data.ts';
import { MemoryLedgerStore } from '../../src/store/memory/ledger-store.ts';
import { emptyRecordData, MemoryRecordStore } from '../../src/store/memory/record-store.ts';
import { storeContract } from './store.contract.ts';
import type { StoreFactory, TestClock } from './stores.ts';

function memoryFactory(): StoreFactory {
  const ledgerData = emptyLedgerData();
  const recordData = emptyRecordData();
  let clock: TestClock = { nowMs: 0 };
  const open = async () => ({
    ledgers: new MemoryLedgerStore(() => clock.nowMs, ledgerData),
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
