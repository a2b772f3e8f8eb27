import { localPlacement } from './actors/local-placement.ts';
import { noPeers } from './actors/no-peers.ts';
import type { Config } from './config.ts';
import type { Log } from './log.ts';
import { type RunningNode, startNodeOver } from './node.ts';
import { readNodeKeys } from './node-keys.ts';
import { openLmdb } from './store/lmdb/open.ts';
import { systemClock } from './system.ts';

/** One millisecond later than now: on a node that stands alone a revocation counts from its very answer on. */
const revocationLeadMs = 1;

/** A node with everything in DATA_DIR. `onFatal` is told when nothing can be written any more. */
export async function startEmbedded(config: Config, log: Log, onFatal: (error: Error) => void): Promise<RunningNode> {
  const stores = await openLmdb({ dataDir: config.dataDir, now: () => systemClock.now(), onFatal });
  const self = 'embedded';
  return startNodeOver(
    () => stores[Symbol.asyncDispose](),
    async () => ({
      config,
      keys: readNodeKeys(config),
      ledgers: stores.ledgers,
      records: stores.records,
      access: stores.access,
      stores: [{ name: 'lmdb', check: async () => void (await stores.records.get('node', 'secrets-key')) }],
      self,
      placement: localPlacement(self),
      peers: noPeers,
      revocationLeadMs,
      clock: systemClock,
      log,
    }),
  );
}
