import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { batchLimits } from '../../src/actors/bounds.ts';
import { noPeers } from '../../src/actors/routing/peers.ts';
import { localPlacement } from '../../src/actors/routing/placement.ts';
import { readConfig } from '../../src/node/config.ts';
import type { NodeKeys } from '../../src/node/node-keys.ts';
import { startNode } from '../../src/node/start-node.ts';
import { PlausibleClock } from '../../src/runtime/clock/plausible-clock.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { createLog, type NodeLog } from '../../src/runtime/telemetry/log.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import { MemoryAccessLog } from './memory-store/access-log.ts';
import { MemoryLedgerStore } from './memory-store/ledger-store.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';
import { MemorySignedHeads, MemoryTileStore } from './memory-store/trees.ts';
import { type ChooseFault, faultyLedgerStore, faultyRecordStore, scriptedFaults } from './store-faults.ts';

/** A whole node whose stores fail when told to. */
export interface FaultyNode extends AsyncDisposable {
  readonly base: string;
  readonly grpcAddress: string;
  readonly fail: ReturnType<typeof scriptedFaults>['fail'];
  readonly heal: () => void;
}

/** What is below the faults, and what chooses them in place of the script; empty stores if not given. */
interface BelowFaults {
  readonly ledgers?: LedgerStore;
  readonly records?: RecordStore;
  readonly choose?: ChooseFault;
  /** The machine's clock in place of its own. */
  readonly machine?: { now(): number };
  readonly log?: NodeLog;
  /** Those of another node on the same stores; new ones if not given. */
  readonly keys?: NodeKeys;
}

const newKey = () => generateKeyPairSync('ed25519').privateKey;

export const newNodeKeys = (): NodeKeys => ({ authority: newKey(), secrets: randomBytes(32), log: newKey() });

export async function runFaultyNode(below: BelowFaults = {}): Promise<FaultyNode> {
  const { fail, heal, choose: scripted } = scriptedFaults();
  const { ledgers = new MemoryLedgerStore(() => systemClock.now()), records = new MemoryRecordStore() } = below;
  const { choose = scripted, machine, log = createLog('silent'), keys = newNodeKeys() } = below;
  const node = await startNode({
    config: readConfig({ HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0' }),
    keys,
    ledgers: faultyLedgerStore(ledgers, choose),
    records: faultyRecordStore(records, choose),
    access: new MemoryAccessLog(),
    tiles: new MemoryTileStore(),
    signedHeads: new MemorySignedHeads(),
    stamp: { storeId: null, isCopy: () => false, clear: () => {} },
    storeChecks: [{ name: 'memory', check: async () => {} }],
    self: 'faulty',
    placement: localPlacement('faulty'),
    peers: noPeers,
    revocationLeadMs: 0,
    batchLimits: batchLimits.commitsTogether,
    clock:
      machine === undefined ? systemClock : new PlausibleClock({ ...systemClock, ...machine }, () => performance.now()),
    ...(machine === undefined ? {} : { machine }),
    log,
    isStoreWritable: () => true,
  });
  return {
    base: `http://127.0.0.1:${node.http.port}`,
    grpcAddress: `127.0.0.1:${node.grpc.port}`,
    fail,
    heal,
    [Symbol.asyncDispose]: () => node.stop(),
  };
}
