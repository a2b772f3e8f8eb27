import type { ActorMeter } from '../actors/meter.ts';
import type { Log } from '../runtime/telemetry/log.ts';
import type { Metrics } from '../runtime/telemetry/metrics.ts';

const resolutions: readonly Parameters<ActorMeter['unknownOutcome']>[0][] = ['written', 'not_written', 'unsettled'];

export function actorMeter(metrics: Metrics, log: Log): ActorMeter {
  // These series exist from the start, so that their first count shows as a rise.
  for (const resolution of resolutions) metrics.unknownOutcomes.inc({ resolution }, 0);
  return {
    committed: (events, seconds) => {
      metrics.commitBatchEvents.observe(events);
      metrics.commitSeconds.observe(seconds);
    },
    answered: (result) => metrics.appends.inc({ result }),
    claimed: (reason) => metrics.claims.inc({ reason }),
    fenced: () => metrics.fencedAppends.inc(),
    damaged: () => metrics.damagedLedgers.inc(),
    unknownOutcome: (resolution, { ledgerId, seq, events, requestIds, cause }) => {
      metrics.unknownOutcomes.inc({ resolution });
      const level = resolution === 'unsettled' ? 'error' : 'warn';
      const line = { ledger_id: ledgerId, seq, events, resolution, request_ids: requestIds, err: cause };
      log[level](line, 'the store did not confirm a batch');
    },
    activated: (seconds) => metrics.activationSeconds.observe(seconds),
  };
}
