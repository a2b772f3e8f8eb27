import type { Registry } from 'prom-client';
import { metricsIn } from '../../runtime/telemetry/metrics.ts';
import type { HeadSource } from './ledger-heads.ts';

/** Why a stream ended. Values of a metric's label. */
const followEnds = [
  'closed',
  'filter_end',
  'revoked',
  'expired',
  'credential',
  'stalled',
  'draining',
  'displaced',
  'overloaded',
  'caller_gone',
  'failed',
] as const;
export type FollowEnd = (typeof followEnds)[number];

const lagBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

/** Counts new heads of followed ledgers by how the node learned of them. */
export function headMeter(registry: Registry): (source: HeadSource) => void {
  const heads = metricsIn(registry).counter({
    name: 'svc_follow_heads_total',
    help: 'New heads of followed ledgers, by how this node learned of them (own, peer, store).',
    labelNames: ['source'],
  });
  for (const source of ['own', 'peer', 'store'] as const) heads.inc({ source }, 0);
  return (source) => heads.inc({ source });
}

export type FollowMeter = ReturnType<typeof followMeter>;

export function followMeter(registry: Registry, followers: () => number, pageBytes: () => number) {
  const { counter, histogram, readGauge } = metricsIn(registry);
  readGauge({
    name: 'svc_followers',
    help: 'Streams now that follow a ledger or a master (at most FOLLOWERS_MAX).',
    read: followers,
  });
  readGauge({
    name: 'svc_follow_page_bytes',
    help: 'Bytes of the events of followed ledgers that are kept in memory.',
    read: pageBytes,
  });
  const pages = counter({
    name: 'svc_follow_pages_read_total',
    help: 'Reads of the store for followers, of up to 32 events each.',
  });
  const events = counter({ name: 'svc_follow_events_read_total', help: 'Events that these reads returned.' });
  const encoded = counter({
    name: 'svc_follow_events_encoded_total',
    help: 'Encodings of shared events: one for each form (REST, gRPC) in which an event is sent.',
  });
  const sent = counter({
    name: 'svc_follow_events_sent_total',
    help: 'Events sent to followers: each event once for each follower.',
  });
  const lag = histogram({
    name: 'svc_follow_lag_seconds',
    help: 'From the commit of an event, as this node learned of it, until it was handed to the transport.',
    buckets: lagBuckets,
  });
  const ended = counter({
    name: 'svc_follow_ended_total',
    help: `Streams of followers that ended, by reason (${followEnds.join(', ')}).`,
    labelNames: ['reason'],
  });
  const refused = counter({
    name: 'svc_follow_refused_total',
    help: 'Streams that were refused, by the bound that was reached.',
    labelNames: ['bound'],
  });
  for (const reason of followEnds) ended.inc({ reason }, 0);
  for (const bound of ['FOLLOWERS_MAX', 'FOLLOWERS_PER_ACTOR_MAX']) refused.inc({ bound }, 0);
  return {
    pageRead: (count: number) => {
      pages.inc();
      events.inc(count);
    },
    encoded: () => encoded.inc(),
    sent: () => sent.inc(),
    /** From the commit, as this node learned of it, until the event was handed to the transport. */
    lag: (ms: number) => lag.observe(ms / 1_000),
    ended: (reason: FollowEnd) => ended.inc({ reason }),
    refused: (bound: string) => refused.inc({ bound }),
  };
}
