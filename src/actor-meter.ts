import type { ActorMeter } from './actors/ledger-actor.ts';
import type { Metrics } from './metrics.ts';

/** What the actors tell, as metrics. */
export function actorMeter(metrics: Metrics): ActorMeter {
  return {
    committed: (events, _bytes, seconds) => {
      metrics.commitBatchEvents.observe(events);
      metrics.commitSeconds.observe(seconds);
    },
    verdict: (result) => metrics.appends.inc({ result }),
    claimed: (reason) => metrics.claims.inc({ reason }),
    fenced: () => metrics.fencedAppends.inc(),
    unknownOutcome: (resolution) => metrics.unknownOutcomes.inc({ resolution }),
    activated: (seconds) => metrics.activationSeconds.observe(seconds),
  };
}
