import type { PendingDelivery } from '../../service/webhooks/due-deliveries.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { AttemptOutcome } from './attempt.ts';

/** An attempt that has ended and is not recorded yet. `outcome` null: the attempt was not made after all. */
export interface AttemptMade {
  readonly pending: PendingDelivery;
  readonly outcome: AttemptOutcome | null;
  readonly endedMs: number;
}

/** A ledger queue: the deliveries of one subscription for one ledger, which are sent one after another. */
export interface Lane {
  readonly queue: SendQueue;
  readonly key: string;
  readonly waiting: PendingDelivery[];
  isSending: boolean;
  /** Attempts that wait to be recorded together, and the function that cancels the timer which will record them. */
  readonly unrecorded: AttemptMade[];
  stopTimer: (() => void) | null;
  /** Resolves when the records that are being written are stored or have failed. */
  recording: Promise<void> | null;
}

/** The deliveries of one subscription that are in memory. They are a window: the rest is in the store. */
export class SendQueue {
  readonly subscription: SubscriptionRecord;
  readonly origin: string;
  readonly lanes = new Map<string, Lane>();
  /** Ids of deliveries that wait in a ledger queue, are being sent, or whose record is being written. */
  readonly held = new Set<string>();
  /** Ids of deliveries that were recorded while a window is read: the read may return them as they were before. */
  readonly recordedMeanwhile = new Set<string>();
  /**
   * How many deliveries of the last window wait for their ledger's cursor. The next window is larger by this number.
   */
  blocked = 0;
  /** Whether the store may hold more due deliveries. */
  hasMore = true;
  isLoading = false;
  /** When the next delivery that is not due yet becomes due, ms since 1970, and the function that cancels the alarm. */
  alarm: { readonly atMs: number; readonly cancel: () => void } | null = null;

  constructor(subscription: SubscriptionRecord) {
    this.subscription = subscription;
    this.origin = new URL(subscription.url).origin;
  }

  /** Adds a delivery at the end of its ledger queue. Returns that queue. */
  add(pending: PendingDelivery): Lane {
    const key = pending.delivery.place?.ledgerId ?? '';
    const lane = this.lanes.get(key) ?? newLane(this, key);
    this.lanes.set(key, lane);
    lane.waiting.push(pending);
    this.held.add(pending.delivery.id);
    return lane;
  }

  /** Whether nothing waits, runs or is known to become due, so that the queue can be removed from memory. */
  get isIdle(): boolean {
    return this.held.size === 0 && !this.hasMore && !this.isLoading && this.alarm === null;
  }

  /** Replaces the alarm. */
  alarmAt(atMs: number, cancel: () => void): void {
    this.silence();
    this.alarm = { atMs, cancel };
  }

  silence(): void {
    this.alarm?.cancel();
    this.alarm = null;
  }
}

function newLane(queue: SendQueue, key: string): Lane {
  return { queue, key, waiting: [], isSending: false, unrecorded: [], stopTimer: null, recording: null };
}
