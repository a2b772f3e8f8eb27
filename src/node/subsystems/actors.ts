import { BatchWindow } from '../../actors/batching/batch-window.ts';
import { defaultShardCount } from '../../actors/bounds.ts';
import { DeadlineWatch } from '../../actors/inbox/deadline-watch.ts';
import type { CommitListener } from '../../actors/ledger/commit-listener.ts';
import { SaveQueue } from '../../actors/ledger/save-queue.ts';
import { Directory } from '../../actors/routing/directory.ts';
import { saturation } from '../../runtime/clock/system-clock.ts';
import type { KeyEndings } from '../../service/actors/key-endings.ts';
import type { Authority } from '../../service/authority/authority.ts';
import { sealedSnapshots } from '../../service/records/sealed-snapshots.ts';
import { actorMeter } from '../actor-meter.ts';
import { datedAppends } from '../dated-appends.ts';
import { refusedSnapshots } from '../refused-snapshots.ts';
import type { NodeContext } from './context.ts';

export function startActors(
  node: NodeContext,
  authority: Authority,
  keys: KeyEndings,
  commitListener: CommitListener,
): Directory {
  const { config, log, membership, metrics, isClockRight } = node;
  const { ledgerCommandsMax: commandsMax, ledgerBytesMax: bytesMax } = config.queues;
  const refused = refusedSnapshots({ log, registry: metrics.registry });
  return new Directory({
    store: sealedSnapshots(datedAppends(node.ledgers, node.isClockGood), node.keys.secrets, refused),
    keys,
    authority: () => authority,
    clock: node.clock,
    random: node.random,
    meter: actorMeter(metrics, log),
    commitListener,
    self: node.self,
    shardCount: membership?.shardCount ?? defaultShardCount,
    placement: node.placement,
    peers: node.peers,
    queueLimits: { commandsMax, bytesMax },
    checksRows: membership !== undefined,
    batches: new BatchWindow(node.clock, node.batchLimits, saturation()),
    deadlines: new DeadlineWatch(node.clock),
    saves: new SaveQueue(node.clock),
    ...(membership === undefined ? {} : { activationsPerSecond: membership.activationsPerSecond, isClockRight }),
  });
}
