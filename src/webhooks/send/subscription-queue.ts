import type { PendingDelivery } from '../../service/webhooks/due-deliveries.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { AttemptOutcome } from './attempt.ts';

/**
 * Deliveries of one subscription in memory, if its target answers quickly, and if it is slow or has not answered yet.
 */
export const windowQuick = 128;
export const windowSlow = 32;
/** If all subscriptions together have this many deliveries in memory, each gets the tight window. */
export const heldMax = 16_384;
export const windowTight = 8;

/**
 * Returns how many deliveries of a subscription may be in memory. `held`: how many of all subscriptions are in memory
 * now.
 */
export function windowOf(isQuick: boolean, held: number): number {
  if (held >= heldMax) return windowTight;
  return isQuick ? windowQuick : windowSlow;
}

/** An attempt that has ended and is not recorded yet. `outcome` null: the attempt was not made after all. */
export interface AttemptMade {
  readonly pending: PendingDelivery;
  readonly outcome: AttemptOutcome | null;
  readonly endedMs: number;
}

/** The deliveries of one subscription for one ledger, which are sent one after another. */
export interface LedgerQueue {
  readonly subscription: SubscriptionQueue;
  readonly owner: string;
  readonly origin: string;
  readonly ledgerId: string | null;
  readonly waiting: PendingDelivery[];
  isSending: boolean;
  /** Attempts that wait to be recorded together, and the function that cancels the timer which will record them. */
  readonly unrecorded: AttemptMade[];
  stopTimer: (() => void) | null;
  /** Resolves when the records that are being written are stored or have failed. */
  recording: Promise<void> | null;
}

/** The deliveries of one subscription that are in memory. They are a window: the rest is in the store. */
export class SubscriptionQueue {
  readonly record: SubscriptionRecord;
  readonly origin: string;
  /** By ledger. null: deliveries that belong to no ledger. */
  readonly ledgers = new Map<string | null, LedgerQueue>();
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

  constructor(record: SubscriptionRecord) {
    this.record = record;
    this.origin = new URL(record.url).origin;
  }

  get id(): string {
    return this.record.id;
  }

  /** Adds a delivery at the end of its ledger queue. Returns that queue. */
  add(pending: PendingDelivery): LedgerQueue {
    const ledgerId = pending.delivery.place?.ledgerId ?? null;
    const ledger = this.ledgers.get(ledgerId) ?? this.#newLedger(ledgerId);
    ledger.waiting.push(pending);
    this.held.add(pending.delivery.id);
    return ledger;
  }

  /** Whether nothing waits, runs or is known to become due, so that the queue can be removed from memory. */
  get isIdle(): boolean {
    return this.held.size === 0 && !this.hasMore && !this.isLoading && this.alarm === null;
  }

  /** Replaces the alarm. */
  alarmAt(atMs: number, cancel: () => void): void {
    this.cancelAlarm();
    this.alarm = { atMs, cancel };
  }

  cancelAlarm(): void {
    this.alarm?.cancel();
    this.alarm = null;
  }

  #newLedger(ledgerId: string | null): LedgerQueue {
    const ledger: LedgerQueue = {
      subscription: this,
      owner: this.record.actorId,
      origin: this.origin,
      ledgerId,
      waiting: [],
      isSending: false,
      unrecorded: [],
      stopTimer: null,
      recording: null,
    };
    this.ledgers.set(ledgerId, ledger);
    return ledger;
  }
}
