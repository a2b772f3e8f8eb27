import { nextAttemptMs } from '../../domain/values/delivery-schedule.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { Deliveries } from '../../service/webhooks/deliveries.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';
import type { HeldDelivery } from '../../service/webhooks/due-deliveries.ts';
import { afterAttempt } from './attempt.ts';
import type { AttemptMade, LedgerQueue, SubscriptionQueue } from './subscription-queue.ts';

/**
 * Successful attempts of a ledger queue are recorded together: at this number, after this time, or at its end. As many
 * may be on the way to the store. A crash may repeat all of these.
 */
export const recordedTogetherMax = 16;
const recordedWithinMs = 50;
/** How often a record is written before its delivery is sent again, and the pause between two tries. */
const triesMax = 5;
const retryMs = 1_000;

interface RecordingParts {
  readonly deliveries: Deliveries;
  readonly clock: Clock;
  readonly log: Log;
  isStopped(): boolean;
  track(work: Promise<void>): void;
  /** The record is stored, or could not be. `wakeAtMs`: when to look at the delivery again. null: never. */
  recorded(queue: SubscriptionQueue, deliveryId: string, wakeAtMs: number | null): void;
}

export class AttemptRecorder {
  readonly #parts: RecordingParts;

  constructor(parts: RecordingParts) {
    this.#parts = parts;
  }

  /**
   * Call it after each attempt of a ledger queue. Records its attempts now, or together with later ones if `mayWait` or
   * a record is being written. Waits if too many are not recorded, so that sending does not run too far ahead.
   */
  async inTime(ledger: LedgerQueue, mayWait: boolean): Promise<void> {
    const isLast = ledger.waiting.length === 0 || this.#parts.isStopped();
    if (isLast || (!mayWait && ledger.recording === null)) return this.record(ledger);
    if (ledger.unrecorded.length < recordedTogetherMax) {
      ledger.stopTimer ??= this.#parts.clock.after(recordedWithinMs, () => this.record(ledger));
      return;
    }
    await ledger.recording;
    this.record(ledger);
  }

  record(ledger: LedgerQueue): void {
    ledger.stopTimer?.();
    ledger.stopTimer = null;
    if (ledger.unrecorded.length === 0) return;
    const settled = ledger.unrecorded.splice(0).map((made) => this.#settle(ledger.subscription, made));
    for (const one of settled) this.#parts.track(one);
    const recording = Promise.allSettled([ledger.recording, ...settled]).then(() => {
      if (ledger.recording === recording) ledger.recording = null;
    });
    ledger.recording = recording;
  }

  async #settle(queue: SubscriptionQueue, { pending, outcome, endedMs }: AttemptMade): Promise<void> {
    const { clock, recorded } = this.#parts;
    const { id, attempts } = pending.delivery;
    if (outcome === null) return recorded(queue, id, clock.now() + retryMs);
    const changed = afterAttempt(pending.delivery, outcome, endedMs, nextAttemptMs(attempts + 1, endedMs));
    const next = changed.nextAttemptAt === null ? null : Date.parse(changed.nextAttemptAt);
    recorded(queue, id, (await this.#replace(pending, changed)) ? next : clock.now() + retryMs);
  }

  /**
   * true: the record is stored, or another node or call has changed the delivery meanwhile, and nothing is written.
   * false: the store does not accept the record. The delivery stays PENDING and is sent again; receivers recognize it
   * by its `webhook-id`.
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
