import { type Clock, sleep } from '../../actors/clock.ts';
import { nextAttemptMs } from '../../domain/delivery-schedule.ts';
import type { Log } from '../../log.ts';
import type { Deliveries } from '../../service/webhooks/deliveries.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';
import type { HeldDelivery } from '../../service/webhooks/due-deliveries.ts';
import { afterAttempt } from './attempt.ts';
import type { AttemptMade, Lane, SendQueue } from './send-queue.ts';

/**
 * Attempts of a lane that were answered well are recorded together, so many or after so long, or when the lane has nothing more to send. As
 * many again may be on their way to the store: what a crash may repeat.
 */
export const recordedTogetherMax = 16;
const recordedWithinMs = 50;
/** How often a record is written again before its delivery is left to be sent again, and the pause before it is. */
const triesMax = 5;
const retryMs = 1_000;

export interface RecordingParts {
  readonly deliveries: Deliveries;
  readonly clock: Clock;
  readonly log: Log;
  isStopped(): boolean;
  /** Work that stopping waits for. */
  track(work: Promise<void>): void;
  /** An attempt's record stands, or could not be written; `wakeAtMs`: when to look at its delivery again. */
  recorded(queue: SendQueue, deliveryId: string, wakeAtMs: number | null): void;
}

/** Records what attempts came to. */
export class AttemptRecorder {
  readonly #parts: RecordingParts;

  constructor(parts: RecordingParts) {
    this.#parts = parts;
  }

  /** What may wait is recorded with what comes behind it; the lane waits where too much would run ahead of its records. */
  async inTime(lane: Lane, mayWait: boolean): Promise<void> {
    const isLast = lane.waiting.length === 0 || this.#parts.isStopped();
    if (isLast || (!mayWait && lane.recording === null)) return this.record(lane);
    if (lane.unrecorded.length < recordedTogetherMax) {
      lane.stopTimer ??= this.#parts.clock.after(recordedWithinMs, () => this.record(lane));
      return;
    }
    await lane.recording;
    this.record(lane);
  }

  /** Begins to record what a lane's attempts came to. */
  record(lane: Lane): void {
    lane.stopTimer?.();
    lane.stopTimer = null;
    if (lane.unrecorded.length === 0) return;
    const settled = lane.unrecorded.splice(0).map((made) => this.#settle(lane.queue, made));
    for (const one of settled) this.#parts.track(one);
    const recording = Promise.allSettled([lane.recording, ...settled]).then(() => {
      if (lane.recording === recording) lane.recording = null;
    });
    lane.recording = recording;
  }

  async #settle(queue: SendQueue, { pending, outcome, endedMs }: AttemptMade): Promise<void> {
    const { clock, recorded } = this.#parts;
    const { id, attempts } = pending.delivery;
    if (outcome === null) return recorded(queue, id, clock.now() + retryMs);
    const changed = afterAttempt(pending.delivery, outcome, endedMs, nextAttemptMs(attempts + 1, endedMs));
    const next = changed.nextAttemptAt === null ? null : Date.parse(changed.nextAttemptAt);
    recorded(queue, id, (await this.#replace(pending, changed)) ? next : clock.now() + retryMs);
  }

  /**
   * False if the store does not take it: then the delivery is PENDING as before and is sent again, which receivers know how to take. A
   * delivery that somebody else has changed meanwhile is theirs.
   */
  async #replace(held: HeldDelivery, changed: DeliveryRecord): Promise<boolean> {
    const { deliveries, clock, log, isStopped } = this.#parts;
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
}
