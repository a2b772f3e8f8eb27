import type { Registry } from 'prom-client';
import { metricsIn } from '../runtime/telemetry/metrics.ts';
import type { AttemptOutcome } from './send/attempt.ts';

export type WebhookMeter = ReturnType<typeof webhookMeter>;

const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface WebhookCounts {
  /** Ledgers that are watched now. */
  readonly watched: () => number;
  /** Active subscriptions that the node knows. */
  readonly known: () => number;
  /** Deliveries in memory. */
  readonly held: () => number;
}

export function webhookMeter(registry: Registry, { watched, known, held }: WebhookCounts) {
  const { counter, histogram, readGauge } = metricsIn(registry);
  readGauge({
    name: 'svc_webhook_watched_ledgers',
    help: 'Ledgers that webhook subscriptions watch, 140 bytes of heap each, or 430 with several owners.',
    read: watched,
  });
  readGauge({
    name: 'svc_webhook_subscriptions',
    help: 'Active webhook subscriptions that this node knows (SUBSCRIPTIONS_MAX), 0.5 to 20 KB of heap each.',
    read: known,
  });
  readGauge({
    name: 'svc_webhook_deliveries_held',
    help: 'Webhook deliveries in memory, 1.5 KiB each: they wait for their receivers, or are being sent.',
    read: held,
  });
  const recorded = counter({
    name: 'svc_webhook_deliveries_total',
    help: 'Webhook deliveries recorded: events times the subscriptions that they are for.',
  });
  const attempts = counter({
    name: 'svc_webhook_attempts_total',
    help: 'Attempts at webhook deliveries, by verdict (dropped: the owner may not read the event any more; nothing was sent).',
    labelNames: ['verdict'],
  });
  const seconds = histogram({
    name: 'svc_webhook_answer_seconds',
    help: 'From sending a webhook until its receiver answered.',
    buckets: secondsBuckets,
  });
  return {
    fannedOut: (deliveries: number) => recorded.inc(deliveries),
    attempted: ({ kind, tookMs }: AttemptOutcome) => {
      attempts.inc({ verdict: kind });
      if (tookMs !== null) seconds.observe(tookMs / 1_000);
    },
  };
}
