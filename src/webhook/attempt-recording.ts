import { type Clock, sleep } from '../actors/clock.ts';
import type { Log } from '../log.ts';
import type { Deliveries } from '../service/deliveries.ts';
import type { DeliveryRecord } from '../service/delivery-record.ts';
import type { HeldDelivery } from '../service/due-deliveries.ts';

/** How often a record is written again before its delivery is left to be sent again, and the pause before it is. */
const triesMax = 5;
const retryMs = 1_000;

export interface RecordingParts {
  readonly deliveries: Deliveries;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Writes what an attempt has changed. False if the store does not take it: then the delivery is PENDING as before and is sent again, which
 * receivers know how to take. A delivery that somebody else has changed meanwhile is theirs.
 */
export async function recordAttempt(
  { deliveries, clock, log }: RecordingParts,
  held: HeldDelivery,
  changed: DeliveryRecord,
  isStopped: () => boolean,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      await deliveries.replace(held, changed, clock.now());
      return true;
    } catch (error) {
      if (tries >= triesMax || isStopped()) {
        log.warn({ err: error, delivery_id: changed.id }, 'an attempt could not be recorded');
        return false;
      }
      await sleep(clock, retryMs);
    }
  }
}
