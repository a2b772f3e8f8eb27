import { type Metric, Registry } from 'prom-client';
import { metricsIn } from '../src/runtime/telemetry/metrics.ts';
import type { PeerMeter } from './peers/grpc-peers.ts';
import type { LossCause, PlacementMeter } from './placement/rebalancing.ts';
import type { RedisValueKind } from './redis/bad-values.ts';

/** The metrics of a clustered node, in addition to those of every node (docs/operations.md). */
interface ClusterMetrics {
  readonly placement: PlacementMeter;
  readonly peers: PeerMeter;
  /** This node answered another one that it does not own the shard. */
  notOwner(): void;
  /** Another node sent a command that this node cannot read. At most once a stream. */
  unreadableCommand(): void;
  /** Shards that this node gained or lost since it started, by reason. */
  readonly moves: Readonly<Record<MoveReason, number>>;
  register(registry: Registry): void;
}

type MoveReason = Parameters<PlacementMeter['moved']>[0];
const moveReasons: readonly MoveReason[] = ['acquired', 'handed_over', 'lost'];
const lossCauses: readonly LossCause[] = ['ran_out', 'missing'];
const forwardResults: readonly Parameters<PeerMeter['forwarded']>[0][] = [
  'answered',
  'not_owner',
  'unreachable',
  'wrong_answer',
];

const secondsBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface ClusterState {
  shards(): Readonly<Record<'held' | 'leaving' | 'elsewhere', number>>;
  projectionLag(): number;
  readonly badRedisValues: Readonly<Record<RedisValueKind, number>>;
  /** How far this node's clock is ahead of the store's, ms (null: not known yet), and whether the node may decide. */
  clock(): { readonly aheadMs: number | null; readonly isRight: boolean };
}

export function createClusterMetrics(cluster: ClusterState): ClusterMetrics {
  const own = new Registry();
  const { counter, histogram, readGauge, readCounter } = metricsIn(own);
  const moves = counter({
    name: 'svc_shard_moves_total',
    help: 'Shards that came to this node or left it, by reason.',
    labelNames: ['reason'],
  });
  const handOver = histogram({
    name: 'svc_shard_hand_over_seconds',
    help: 'From the end of admission for a shard until its heir is told.',
    buckets: secondsBuckets,
  });
  const renew = histogram({
    name: 'svc_lease_renew_seconds',
    help: 'Renewing all leases of this node, whether Redis answered or not.',
    buckets: secondsBuckets,
  });
  const renewalsFailed = counter({
    name: 'svc_lease_renewals_failed_total',
    help: 'Renewals of leases that Redis did not answer.',
  });
  const lost = counter({
    name: 'svc_leases_lost_total',
    help: 'Leases that were gone before they were given up, by cause.',
    labelNames: ['cause'],
  });
  const forwarded = counter({
    name: 'svc_forwarded_calls_total',
    help: 'Commands sent to other nodes, by what came of it.',
    labelNames: ['result'],
  });
  const notOwner = counter({
    name: 'svc_not_owner_total',
    help: 'Commands of other nodes answered NOT_OWNER: they had believed this node to have the shard.',
  });
  const unreadableCommands = counter({
    name: 'svc_peer_streams_unreadable_total',
    help: 'Streams of other nodes that brought a command which this node cannot read; it was not carried out here.',
  });
  readGauge({
    name: 'svc_shards',
    help: 'Shards by state: held by this node, being handed over, elsewhere.',
    label: 'state',
    read: () => cluster.shards(),
  });
  readGauge({
    name: 'svc_projection_lag_events',
    help: 'Events that this node has written and does not know to be projected yet.',
    read: () => cluster.projectionLag(),
  });
  readCounter({
    name: 'svc_redis_bad_values_total',
    help: 'Values in Redis that were passed over because no node has written them, by kind, each time that one was met.',
    label: 'kind',
    read: () => cluster.badRedisValues,
  });
  readGauge({
    name: 'svc_clock_ahead_of_store_seconds',
    help: 'How far the clock of this node is ahead of the clock of the store; negative: behind.',
    read: () => (cluster.clock().aheadMs ?? 0) / 1_000,
  });
  readGauge({
    name: 'svc_clock_refused',
    help: '1 while this node decides nothing because its clock is off, 0 otherwise.',
    read: () => (cluster.clock().isRight ? 0 : 1),
  });
  // Every series exists from the start, so that the first count shows as an increase.
  for (const reason of moveReasons) moves.inc({ reason }, 0);
  for (const cause of lossCauses) lost.inc({ cause }, 0);
  for (const result of forwardResults) forwarded.inc({ result }, 0);
  const moved: Record<MoveReason, number> = { acquired: 0, handed_over: 0, lost: 0 };
  return {
    placement: {
      moved: (reason) => {
        moved[reason] += 1;
        moves.inc({ reason });
      },
      handedOver: (seconds) => handOver.observe(seconds),
      renewed: (seconds, isAnswered) => {
        renew.observe(seconds);
        if (!isAnswered) renewalsFailed.inc();
      },
      lost: (cause) => lost.inc({ cause }),
    },
    peers: { forwarded: (result) => forwarded.inc({ result }) },
    notOwner: () => notOwner.inc(),
    unreadableCommand: () => unreadableCommands.inc(),
    moves: moved,
    register: (registry) => {
      for (const { name } of own.getMetricsAsArray()) registry.registerMetric(own.getSingleMetric(name) as Metric);
    },
  };
}
