import { nextAttemptMs } from '../../domain/values/delivery-schedule.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { heldDeliveryBytes, queueBounds } from '../../runtime/limits/queue-bounds.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { Deliveries } from '../../service/webhooks/deliveries.ts';
import { type DeliveryRecord, isNew } from '../../service/webhooks/delivery-record.ts';
import type { HeldDelivery } from '../../service/webhooks/due-deliveries.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import { type AttemptOutcome, afterAttempt } from './attempt.ts';
import { FairQueue } from './fair-queue.ts';
import {
  type AttemptMade,
  type LedgerQueue,
  SubscriptionQueue,
  windowFull,
  windowQuick,
  windowSlow,
} from './subscription-queue.ts';
import type { AttemptResult } from './target-health.ts';

/** Pause after a failure of the store. */
const retryMs = 1_000;
/**
 * Successful attempts of a ledger queue are recorded together: at this number, after this time, or at its end. As many
 * may be on the way to the store. A crash may repeat all of these.
 */
export const recordedTogetherMax = 16;
const recordedWithinMs = 50;
/** How often a record is written before its delivery is sent again. */
const recordTriesMax = 5;
/** Main thread time of a delivery, measured: body, signatures, request, answer, record, reading the next. */
const sendCostMs = 0.3;
/** The same of looking for deliveries to send, without reading them. */
const loadCostMs = 0.2;
/** The part of `deliveriesMax` that targets may fill which do not answer quickly. The rest is for quick ones. */
const slowShare = 3 / 4;
/** The part that one owner may fill. Its attempts need less: an owner has half of them at most. */
const ownerShare = 1 / 4;
/** Windows that are read at once, of all owners and of one. Thousands of subscriptions may be woken at once. */
const loadsAtOnce = { total: 8, perCaller: 4 };

interface SenderParts {
  readonly deliveries: Deliveries;
  readonly limiter: BackgroundLimiter;
  /** Counts the deliveries in memory, and says how many there may be. */
  readonly memory: MemoryBudget;
  readonly clock: Clock;
  readonly log: Log;
  subscription(id: string): SubscriptionRecord | undefined;
  ownsShardOf(subscriptionId: string): boolean;
  /** The first seq of a ledger that may lack delivery records. */
  position(ledgerId: string): Promise<number>;
  /** See attempt.ts. */
  attempt(subscription: SubscriptionRecord, delivery: DeliveryRecord): Promise<AttemptOutcome | null>;
  /** The receiver answered 410. Ends the subscription, and calls `drop` before it resolves. */
  gone(subscriptionId: string): Promise<void>;
  attempted(outcome: AttemptOutcome): void;
}

/**
 * Sends the deliveries that are recorded as PENDING.
 *
 * Invariants:
 * - Of each subscription and ledger, one delivery is sent at a time, in the order of the ledger. A retry waits for its
 *   time, and later deliveries overtake it.
 * - A delivery is sent only once its ledger's cursor has passed its event, so that no earlier one can appear any more.
 * - Memory holds a window of each subscription's deliveries: one at least, and beside it `deliveriesMax` of all.
 * - The number of attempts that are not recorded yet is bounded.
 */
export class Sender {
  readonly #parts: SenderParts;
  /** Whole numbers: of all targets, of those that do not answer quickly, and of one owner. */
  readonly #bounds: { readonly all: number; readonly slow: number; readonly ofOwner: number };
  /** Deliveries in memory, without one of each subscription, by owner. */
  readonly #counted: FairShare<string>;
  readonly #subscriptions = new Map<string, SubscriptionQueue>();
  readonly #fairQueue: FairQueue<LedgerQueue>;
  /** Owners are served in rotation. */
  readonly #loads = new FairPlaces(loadsAtOnce);
  readonly #underWay = new Set<Promise<void>>();
  #held = 0;
  #isResting = false;
  #stopped = false;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    const all = queueBounds(parts.memory.maxBytes).deliveriesMax;
    this.#bounds = { all, slow: Math.floor(all * slowShare), ofOwner: Math.ceil(all * ownerShare) };
    this.#counted = new FairShare(all);
    this.#fairQueue = new FairQueue({ clock: parts.clock, freed: () => this.#dispatch() });
  }

  get held(): number {
    return this.#held;
  }

  /** A delivery was added to the queue, or is about to leave it. The only one of a queue is not counted. */
  #count(queue: SubscriptionQueue, change: 1 | -1): void {
    this.#held += change;
    if (queue.held.size === 1) return;
    this.#counted.add(queue.owner, change);
    if (change > 0) this.#parts.memory.add('queue', heldDeliveryBytes);
    else this.#parts.memory.release('queue', heldDeliveryBytes);
  }

  wake(subscriptionId: string): void {
    if (this.#stopped || !this.#parts.ownsShardOf(subscriptionId)) return;
    const subscription = this.#parts.subscription(subscriptionId);
    if (subscription === undefined) return;
    const queue = this.#subscriptions.get(subscriptionId) ?? new SubscriptionQueue(subscription);
    this.#subscriptions.set(subscriptionId, queue);
    queue.hasMore = true;
    this.#refill(queue);
  }

  /** The subscription has ended, or another node sends for it now. Running attempts go on and are recorded. */
  drop(subscriptionId: string): void {
    const queue = this.#subscriptions.get(subscriptionId);
    if (queue === undefined) return;
    this.#subscriptions.delete(subscriptionId);
    queue.cancelAlarm();
    for (const ledger of queue.ledgers.values()) {
      this.#giveBack(ledger, ledger.waiting.length);
      this.#record(ledger);
    }
  }

  /** Removes the last `count` waiting deliveries from memory. */
  #giveBack(ledger: LedgerQueue, count: number): void {
    const { subscription: queue, waiting } = ledger;
    for (const { delivery } of waiting.splice(waiting.length - count)) {
      this.#count(queue, -1);
      queue.held.delete(delivery.id);
    }
    if (waiting.length > 0 || ledger.isSending) return;
    this.#fairQueue.leave(ledger);
    queue.ledgers.delete(ledger.ledgerId);
    this.#record(ledger);
  }

  /** The target does not answer quickly any more: what is beyond the window is given back. */
  #trim(queue: SubscriptionQueue): void {
    let beyond = queue.held.size - this.#windowOf(queue);
    for (const ledger of [...queue.ledgers.values()].reverse()) {
      if (beyond <= 0) return;
      const count = Math.min(beyond, ledger.waiting.length);
      if (count === 0) continue;
      this.#giveBack(ledger, count);
      beyond -= count;
      queue.hasMore = true;
    }
  }

  /** Resolves when the running attempts have ended and are recorded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const queue of this.#subscriptions.values()) {
      queue.cancelAlarm();
      for (const ledger of queue.ledgers.values()) this.#record(ledger);
    }
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #isGone(queue: SubscriptionQueue): boolean {
    return this.#stopped || this.#subscriptions.get(queue.id) !== queue;
  }

  #refill(queue: SubscriptionQueue): void {
    if (queue.isLoading || this.#isGone(queue)) return;
    if (queue.hasMore && queue.held.size <= this.#windowOf(queue) / 4) this.#track(this.#startLoad(queue));
    else if (queue.isIdle) this.#subscriptions.delete(queue.id);
  }

  /** How many deliveries of a subscription may be in memory. */
  #windowOf(queue: SubscriptionQueue): number {
    const isQuick = this.#fairQueue.isQuick(queue.origin);
    const [window, max] = isQuick ? [windowQuick, this.#bounds.all] : [windowSlow, this.#bounds.slow];
    const ofOwner = this.#counted.heldBy(queue.owner);
    const free = Math.min(max - this.#counted.total, this.#bounds.ofOwner - ofOwner);
    return Math.max(windowFull, Math.min(window, free + Math.max(1, queue.held.size)));
  }

  async #startLoad(queue: SubscriptionQueue): Promise<void> {
    const { owner } = queue;
    queue.isLoading = true;
    await this.#loads.take(owner);
    try {
      if (!this.#isGone(queue)) await this.#parts.limiter.take(loadCostMs);
      await this.#load(queue);
    } finally {
      this.#loads.leave(owner);
    }
  }

  async #load(queue: SubscriptionQueue): Promise<void> {
    const { clock, deliveries, log } = this.#parts;
    if (this.#isGone(queue)) return;
    const window = this.#windowOf(queue);
    // The read below includes wakes and records from the wait.
    queue.hasMore = false;
    queue.recordedMeanwhile.clear();
    const blockedBefore = queue.blocked;
    let isFull = false;
    try {
      // Blocked ones count twice, so that few reads find the first that is not.
      const limit = Math.max(window, blockedBefore) + queue.held.size + blockedBefore;
      const now = isoTime(clock.now());
      const { due, next } = await deliveries.pending(queue.id, limit, now);
      if (next !== null) this.#setAlarm(queue, Date.parse(next));
      const ready = await passedByCursor(due, (ledgerId) => this.#parts.position(ledgerId));
      queue.blocked = due.length - ready.length;
      // Nothing is awaited from here to the end of the load: a record in between would not begin the next one.
      const hadRoom = this.#take(queue, ready);
      isFull = due.length === limit || !hadRoom;
    } catch (error) {
      log.warn({ err: error, subscription_id: queue.id }, 'reading deliveries failed; it is tried again');
      this.#setAlarm(queue, clock.now() + retryMs);
    }
    queue.recordedMeanwhile.clear();
    queue.isLoading = false;
    this.#dispatch();
    const goesOn = queue.hasMore || (isFull && queue.blocked > blockedBefore);
    // The rest is read when the deliveries in memory are done, or after a wake when a cursor has passed the blocked
    // ones.
    queue.hasMore ||= isFull;
    if (goesOn || queue.isIdle) this.#refill(queue);
  }

  /** Puts ready deliveries into their ledger queues, in their order. Returns false if some had no room. */
  #take(queue: SubscriptionQueue, ready: readonly HeldDelivery[]): boolean {
    if (this.#isGone(queue)) return true;
    // Other subscriptions may have taken the room since the deliveries were read.
    const window = this.#windowOf(queue);
    for (const pending of ready) {
      const { id } = pending.delivery;
      if (queue.held.has(id) || queue.recordedMeanwhile.has(id)) continue;
      if (queue.held.size >= window) return false;
      const ledger = queue.add(pending);
      this.#count(queue, 1);
      if (!ledger.isSending && ledger.waiting.length === 1) this.#fairQueue.ready(ledger);
    }
    return true;
  }

  #dispatch(): void {
    while (!this.#stopped && !this.#isResting) {
      const next = this.#fairQueue.next();
      if (next === null) return;
      const restMs = this.#parts.limiter.delayMs(sendCostMs);
      if (restMs > 0) {
        this.#isResting = true;
        this.#parts.clock.after(restMs, () => {
          this.#isResting = false;
          this.#dispatch();
        });
        return;
      }
      this.#track(this.#send(this.#fairQueue.begin(next)));
    }
  }

  async #send(ledger: LedgerQueue): Promise<void> {
    const { subscription: queue } = ledger;
    const pending = ledger.waiting.shift();
    if (pending === undefined) throw new Error('a queue without deliveries got a slot');
    ledger.isSending = true;
    let outcome: AttemptOutcome | null = null;
    try {
      outcome = await this.#parts.attempt(queue.record, pending.delivery);
      if (outcome !== null) this.#parts.attempted(outcome);
    } catch (error) {
      const fields = { err: error, subscription_id: queue.id, delivery_id: pending.delivery.id };
      this.#parts.log.warn(fields, 'a delivery could not be attempted; it is tried again');
    }
    const wasQuick = this.#fairQueue.isQuick(queue.origin);
    this.#fairQueue.end(ledger, resultOf(outcome));
    if (wasQuick && !this.#fairQueue.isQuick(queue.origin))
      for (const one of this.#subscriptions.values()) if (one.origin === queue.origin) this.#trim(one);
    if (outcome?.kind === 'gone') this.#track(this.#parts.gone(queue.id));
    this.#dispatch();
    ledger.unrecorded.push({ pending, outcome, endedMs: this.#parts.clock.now() });
    await this.#recordInTime(ledger, outcome?.kind === 'delivered');
    ledger.isSending = false;
    if (ledger.waiting.length > 0) this.#fairQueue.ready(ledger);
    else queue.ledgers.delete(ledger.ledgerId);
    this.#dispatch();
  }

  /**
   * Called after each attempt of a ledger queue. Records its attempts now, or together with later ones if `mayWait` or
   * a record is being written. Waits if too many are not recorded, so that sending does not run too far ahead.
   */
  async #recordInTime(ledger: LedgerQueue, mayWait: boolean): Promise<void> {
    const isLast = ledger.waiting.length === 0 || this.#stopped;
    if (isLast || (!mayWait && ledger.recording === null)) return this.#record(ledger);
    if (ledger.unrecorded.length < recordedTogetherMax) {
      ledger.stopTimer ??= this.#parts.clock.after(recordedWithinMs, () => this.#record(ledger));
      return;
    }
    await ledger.recording;
    this.#record(ledger);
  }

  #record(ledger: LedgerQueue): void {
    ledger.stopTimer?.();
    ledger.stopTimer = null;
    if (ledger.unrecorded.length === 0) return;
    const settled = ledger.unrecorded.splice(0).map((made) => this.#settle(ledger.subscription, made));
    for (const one of settled) this.#track(one);
    const recording = Promise.allSettled([ledger.recording, ...settled]).then(() => {
      if (ledger.recording === recording) ledger.recording = null;
    });
    ledger.recording = recording;
  }

  async #settle(queue: SubscriptionQueue, { pending, outcome, endedMs }: AttemptMade): Promise<void> {
    const { clock } = this.#parts;
    const { id, attempts } = pending.delivery;
    if (outcome === null) return this.#recorded(queue, id, clock.now() + retryMs);
    const changed = afterAttempt(pending.delivery, outcome, endedMs, nextAttemptMs(attempts + 1, endedMs));
    const next = changed.nextAttemptAt === null ? null : Date.parse(changed.nextAttemptAt);
    this.#recorded(queue, id, (await this.#replace(pending, changed)) ? next : clock.now() + retryMs);
  }

  /**
   * true: the record is stored, or another node or call has changed the delivery meanwhile, and nothing is written.
   * false: the store does not accept the record. The delivery stays PENDING and is sent again; receivers recognize it
   * by its `webhook-id`.
   */
  async #replace(held: HeldDelivery, changed: DeliveryRecord): Promise<boolean> {
    const { deliveries, clock, log } = this.#parts;
    for (let tries = 1; ; tries++) {
      try {
        await deliveries.replace(held, changed, clock.now());
        return true;
      } catch (error) {
        if (tries >= recordTriesMax || this.#stopped) {
          log.warn({ err: error, delivery_id: changed.id }, 'an attempt could not be recorded');
          return false;
        }
        await sleep(clock, retryMs);
      }
    }
  }

  /** The record is stored, or could not be. `wakeAtMs`: when to look at the delivery again. null: never. */
  #recorded(queue: SubscriptionQueue, deliveryId: string, wakeAtMs: number | null): void {
    if (queue.isLoading) queue.recordedMeanwhile.add(deliveryId);
    if (wakeAtMs !== null) this.#setAlarm(queue, wakeAtMs);
    this.#count(queue, -1);
    queue.held.delete(deliveryId);
    this.#refill(queue);
  }

  #setAlarm(queue: SubscriptionQueue, atMs: number): void {
    if (this.#isGone(queue) || (queue.alarm !== null && queue.alarm.atMs <= atMs)) return;
    const delayMs = Math.max(0, atMs - this.#parts.clock.now());
    queue.alarmAt(
      atMs,
      this.#parts.clock.after(delayMs, () => {
        queue.alarm = null;
        this.wake(queue.id);
      }),
    );
  }

  #track(work: Promise<void>): void {
    const ended = work
      .catch((error) => this.#parts.log.error({ err: error }, 'sending webhooks met something unexpected'))
      .finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }
}

function resultOf(outcome: AttemptOutcome | null): AttemptResult {
  if (outcome === null || outcome.kind === 'dropped') return 'not_asked';
  return outcome.tookMs ?? 'no_answer';
}

/** A delivery from the log without an attempt may be sent only once its ledger's cursor has passed its event. */
async function passedByCursor(
  due: readonly HeldDelivery[],
  position: (ledgerId: string) => Promise<number>,
): Promise<HeldDelivery[]> {
  const positions = new Map<string, number>();
  const passed: HeldDelivery[] = [];
  for (const pending of due) {
    const { place } = pending.delivery;
    if (place !== null && isNew(pending.delivery)) {
      const first = positions.get(place.ledgerId) ?? (await position(place.ledgerId));
      positions.set(place.ledgerId, first);
      if (place.seq >= first) continue;
    }
    passed.push(pending);
  }
  return passed;
}
