import type { BatchLimits } from '../actors/batching/batch-window.ts';
import type { Peers } from '../actors/routing/peers.ts';
import type { NodeId, Placement } from '../actors/routing/placement.ts';
import type { Clock } from '../runtime/clock/clock.ts';
import type { MemoryBudget } from '../runtime/limits/memory-budget.ts';
import type { NodeLog } from '../runtime/telemetry/log.ts';
import type { StoreCheck } from '../service/calls/health.ts';
import type { StoreStamp } from '../store/store-stamp.ts';
import type { Stores } from '../store/stores.ts';
import type { Config } from './config.ts';
import type { Membership } from './membership.ts';
import type { NodeKeys } from './node-keys.ts';

/** The parts of a node. A single node (`embedded.ts`) and a node of a cluster differ only in these. */
export interface NodeParts extends Stores {
  readonly config: Config;
  readonly keys: NodeKeys;
  readonly stamp: StoreStamp;
  /** Shown in /health. */
  readonly storeChecks: readonly StoreCheck[];
  /** Ports of the store and lease servers. No webhook goes to them. */
  readonly backendPorts?: ReadonlySet<number>;
  readonly self: NodeId;
  readonly placement: Placement;
  readonly peers: Peers;
  readonly membership?: Membership;
  /**
   * How far ahead of now a key's revocation is dated, ms: by then no node believes an older record. 0 on a single node.
   */
  readonly revocationLeadMs: number;
  /** How batches wait on a saturated node. Depends on the store. */
  readonly batchLimits: BatchLimits;
  /** Given if the membership counts in it too. Made here if left out. */
  readonly memory?: MemoryBudget;
  readonly clock: Clock;
  /** The machine's clock, under `clock`. */
  readonly machine?: Pick<Clock, 'now'>;
  readonly log: NodeLog;
  /** false once the embedded store has stopped writing, or while a cluster's store does not answer. */
  readonly isStoreWritable: () => boolean;
}

export interface RunningNode {
  readonly http: { readonly host: string; readonly port: number };
  readonly grpc: { readonly host: string; readonly port: number };
  readonly ops: { readonly host: string; readonly port: number };
  /** Refuses new calls, waits for running ones (at most 10 s), and removes ledgers from memory. */
  stop(): Promise<void>;
}
