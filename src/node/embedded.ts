import { batchLimits } from '../actors/bounds.ts';
import { noPeers } from '../actors/routing/peers.ts';
import { localPlacement } from '../actors/routing/placement.ts';
import { MonotonicWallClock } from '../runtime/clock/monotonic-wall-clock.ts';
import { goodClock } from '../runtime/clock/plausible-clock.ts';
import { systemClock } from '../runtime/clock/system-clock.ts';
import type { Log, NodeLog } from '../runtime/telemetry/log.ts';
import { subscriptionsIn } from '../service/webhooks/subscription-record.ts';
import { StoreStopped } from '../store/ledger-store.ts';
import { openLmdb } from '../store/lmdb/open.ts';
import type { RecordStore } from '../store/record-store.ts';
import { UnreadableRecord } from '../store/unreadable-record.ts';
import type { Config } from './config.ts';
import { keysInUse, readNodeKeys } from './node-keys.ts';
import type { RunningNode } from './node-parts.ts';
import { startNodeOver } from './start-node.ts';

/** On a single node a revocation takes effect with its answer. */
const revocationLeadMs = 0;

/** All data is in DATA_DIR. `onFatal` is called once, after a failed write to the disk. Reads go on then. */
export async function startEmbedded(
  config: Config,
  log: NodeLog,
  onFatal: (error: Error) => void,
): Promise<RunningNode> {
  const failed = (error: Error) => {
    log.error(
      { err: error, data_dir: config.dataDir },
      'a write to the disk failed: nothing is written any more, reads go on, and the node stops. See to the free space and the health of the disk under DATA_DIR, then start the node again: nothing that was answered is lost',
    );
    onFatal(error);
  };
  // A cluster instead compares its nodes' clocks: a node whose clock is off is not ready.
  const clock = new MonotonicWallClock(goodClock(systemClock), () => performance.now());
  const stores = await openLmdb({ dataDir: config.dataDir, now: () => clock.now(), onFatal: failed });
  const self = 'embedded';
  return startNodeOver(
    () => stores[Symbol.asyncDispose](),
    async () => {
      await startBehindSubscriptions(clock, stores.records, log);
      return {
        config,
        keys: readNodeKeys(config, await keysInUse(stores.records)),
        ...stores,
        storeChecks: [
          {
            name: 'lmdb',
            check: async () => {
              if (!stores.isWritable()) throw new StoreStopped();
              await stores.records.get('node', 'secrets-key');
            },
          },
        ],
        isStoreWritable: () => stores.isWritable(),
        self,
        placement: localPlacement(self),
        peers: noPeers,
        revocationLeadMs,
        batchLimits: batchLimits.commitsTogether,
        clock,
        log,
      };
    },
  );
}

/**
 * Dates no event before a webhook subscription of an earlier run, even if the machine's clock was set back in between.
 * So the subscription gets everything that is answered from now on.
 */
async function startBehindSubscriptions(clock: MonotonicWallClock, records: RecordStore, log: Log): Promise<void> {
  const newest = await subscriptionsIn(records)
    .newestInForce()
    .catch((error: unknown) => {
      if (!(error instanceof UnreadableRecord)) throw error;
      log.error(
        { err: error.cause },
        'the newest webhook subscription is damaged: the node does not know when it was made',
      );
      return null;
    });
  if (newest === null) return;
  const aheadMs = clock.notBefore(Date.parse(newest.createdAt));
  if (aheadMs <= 0) return;
  log.warn(
    { ahead_ms: aheadMs, subscription_id: newest.id },
    'the clock of this machine is behind the newest webhook subscription: times are told from there on, at half speed until it has caught up',
  );
}
