import type { AccessLog } from './access-log.ts';
import type { LedgerStore } from './ledger-store.ts';
import type { RecordStore } from './record-store.ts';
import type { SignedHeads } from './signed-heads.ts';
import type { TileStore } from './tile-store.ts';

export interface Stores {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly access: AccessLog;
  readonly tiles: TileStore;
  readonly signedHeads: SignedHeads;
}
