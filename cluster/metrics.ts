import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { PeerMeter } from './peers/grpc-peers.ts';
import type { PlacementMeter } from './placement/rebalancing.ts';

/** What a node of a cluster counts beside what every node does (cluster.md, Operations). */
export interface ClusterMetrics {
  readonly placement: PlacementMeter;
  readonly peers: PeerMeter;
  register(registry: Registry): void;
}

const secondsBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `shards` is asked when the metrics are read: shards by what this node has to do with them. */
export function createClusterMetrics(
  shards: () => Readonly<Record<'held' | 'leaving' | 'elsewhere', number>>,
): ClusterMetrics {
  const moves = new Counter({
    name: 'svc_shard_moves_total',
    help: 'Shards that came to this node or left it, by reason.',
    labelNames: ['reason'],
    registers: [],
  });
  const handOver = new Histogram({
    name: 'svc_shard_hand_over_seconds',
    help: 'From the end of admission for a shard until its heir is told.',
    buckets: secondsBuckets,
    registers: [],
  });
  const renew = new Histogram({
    name: 'svc_lease_renew_seconds',
    help: 'Renewing all leases of this node.',
    buckets: secondsBuckets,
    registers: [],
  });
  const lost = new Counter({
    name: 'svc_leases_lost_total',
    help: 'Leases that were gone before they were given up, by cause.',
    labelNames: ['cause'],
    registers: [],
  });
  const forwarded = new Counter({
    name: 'svc_forwarded_calls_total',
    help: 'Commands sent to other nodes, by what came of it.',
    labelNames: ['result'],
    registers: [],
  });
  const states = new Gauge({
    name: 'svc_shards',
    help: 'Shards by state: held by this node, being handed over, elsewhere.',
    labelNames: ['state'],
    registers: [],
    collect() {
      for (const [state, count] of Object.entries(shards())) this.set({ state }, count);
    },
  });
  return {
    placement: {
      moved: (reason) => moves.inc({ reason }),
      handedOver: (seconds) => handOver.observe(seconds),
      renewed: (seconds) => renew.observe(seconds),
      lost: (cause) => lost.inc({ cause }),
    },
    peers: { forwarded: (result) => forwarded.inc({ result }) },
    register: (registry) => {
      registry.registerMetric(moves);
      registry.registerMetric(handOver);
      registry.registerMetric(renew);
      registry.registerMetric(lost);
      registry.registerMetric(forwarded);
      registry.registerMetric(states);
    },
  };
}
