import type { Registry } from 'prom-client';
import type { Log } from '../runtime/telemetry/log.ts';
import { metricsIn } from '../runtime/telemetry/metrics.ts';

const reasons = ['unsealed', 'wrong_seal'] as const;

/** Counts snapshots that are refused because of their seals, and logs the first one of each reason. */
export function refusedSnapshots({
  log,
  registry,
}: {
  readonly log: Log;
  readonly registry: Registry;
}): (owner: string, reason: (typeof reasons)[number]) => void {
  const counter = metricsIn(registry).counter({
    name: 'svc_refused_snapshots_total',
    help: 'Snapshots that were not used because their seal is missing or wrong; the state was rebuilt from the log.',
    labelNames: ['reason'],
  });
  for (const reason of reasons) counter.inc({ reason }, 0);
  const logged = new Set<string>();
  return (owner, reason) => {
    counter.inc({ reason });
    if (logged.has(reason)) return;
    logged.add(reason);
    if (reason === 'unsealed')
      log.info({ owner }, 'a snapshot without a seal is not used: states are rebuilt from their logs, once each');
    else
      log.error(
        { owner },
        'a snapshot has a wrong seal and is not used: somebody without the secrets key has written to the store',
      );
  };
}
