import type { PendingDelivery } from '../../service/webhooks/due-deliveries.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { AttemptOutcome } from './attempt.ts';

/** `outcome` null: there was no attempt after all. */
export interface AttemptMade {
  readonly pending: PendingDelivery;
  readonly outcome: AttemptOutcome | null;
  readonly endedMs: number;
}

/** The deliveries of one subscription and one ledger: one is sent after the other. */
export interface Lane {
  readonly queue: SendQueue;
  readonly key: string;
  readonly waiting: PendingDelivery[];
  isSending: boolean;
  /** Attempts that were made and wait to be recorded together, and what takes back that they are in time. */
  readonly unrecorded: AttemptMade[];
  stopTimer: (() => void) | null;
  /** The records that are being written. */
  recording: Promise<void> | null;
}

/** What is in memory of one subscription's deliveries: a window; the rest is in the store. */
export class SendQueue {
  readonly subscription: SubscriptionRecord;
  readonly origin: string;
  readonly lanes = new Map<string, Lane>();
  /** Ids of deliveries that wait in a lane, are being sent, or whose record is being written. */
  readonly held = new Set<string>();
  /** While a window is read: what was recorded meanwhile, and may be read as it was before. */
  readonly recordedMeanwhile = new Set<string>();
  /** Of those last read: what waits until its ledger's cursor has passed it, and must not hide what comes behind it. */
  blocked = 0;
  /** The store may hold more that is due. */
  hasMore = true;
  isLoading = false;
  /** When the next delivery is due that is not yet (milliseconds since 1970), and what takes the alarm back. */
  alarm: { readonly atMs: number; readonly cancel: () => void } | null = null;

  constructor(subscription: SubscriptionRecord) {
    this.subscription = subscription;
    this.origin = new URL(subscription.url).origin;
  }

  /** The lane of a delivery, with the delivery at its end. */
  add(pending: PendingDelivery): Lane {
    const key = pending.delivery.place?.ledgerId ?? '';
    const lane = this.lanes.get(key) ?? newLane(this, key);
    this.lanes.set(key, lane);
    lane.waiting.push(pending);
    this.held.add(pending.delivery.id);
    return lane;
  }

  /** Nothing waits, nothing runs, and nothing is known to come: it can leave memory. */
  get isIdle(): boolean {
    return this.held.size === 0 && !this.hasMore && !this.isLoading && this.alarm === null;
  }

  /** Takes back the alarm there is, if any. */
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
