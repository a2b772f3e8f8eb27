import type { ActorMeter } from '../actors/meter.ts';
import type { Metrics } from '../runtime/telemetry/metrics.ts';

const resolutions: readonly Parameters<ActorMeter['unknownOutcome']>[0][] = ['written', 'not_written', 'unsettled'];

export function actorMeter(metrics: Metrics): ActorMeter {
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
    unknownOutcome: (resolution) => metrics.unknownOutcomes.inc({ resolution }),
    activated: (seconds) => metrics.activationSeconds.observe(seconds),
  };
}
