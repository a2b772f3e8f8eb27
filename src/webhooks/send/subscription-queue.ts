import type { HeldDelivery } from '../../service/webhooks/due-deliveries.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';
import type { AttemptOutcome } from './attempt.ts';

/** In memory of one subscription: if its target is quick, if not, and while no more of all may be in memory. */
export const windowQuick = 128;
export const windowSlow = 32;
export const windowFull = 1;

/** An attempt that is not recorded yet. `outcome` null: it was not made after all. */
export interface AttemptMade {
  readonly pending: HeldDelivery;
  readonly outcome: AttemptOutcome | null;
  readonly endedMs: number;
}

/** Deliveries of one subscription for one ledger, which are sent one after another. `ledgerId` null: of no ledger. */
export interface LedgerQueue {
  readonly subscription: SubscriptionQueue;
  readonly owner: string;
  readonly origin: string;
  readonly ledgerId: string | null;
  readonly waiting: HeldDelivery[];
  isSending: boolean;
  /** Attempts that wait to be recorded together, and what cancels the timer that will record them. */
  readonly unrecorded: AttemptMade[];
  stopTimer: (() => void) | null;
  recording: Promise<void> | null;
}

/** The deliveries of one subscription in memory: a window, the rest is in the store. */
export class SubscriptionQueue {
  readonly record: SubscriptionRecord;
  readonly origin: string;
  readonly ledgers = new Map<string | null, LedgerQueue>();
  /** Ids of deliveries that wait in a ledger queue, are being sent, or whose record is being written. */
  readonly held = new Set<string>();
  /** Ids that were recorded while a window is read: the read may return them as they were before. */
  readonly recordedMeanwhile = new Set<string>();
  /** Deliveries of the last window that wait for their ledger's cursor. The next window is larger by them. */
  blocked = 0;
  /** Whether the store may hold more due deliveries. */
  hasMore = true;
  isLoading = false;
  /** When the next delivery becomes due, ms since 1970. */
  alarm: { readonly atMs: number; readonly cancel: () => void } | null = null;

  constructor(record: SubscriptionRecord) {
    this.record = record;
    this.origin = new URL(record.url).origin;
  }

  get id(): string {
    return this.record.id;
  }

  get owner(): string {
    return this.record.actorId;
  }

  add(pending: HeldDelivery): LedgerQueue {
    const ledgerId = pending.delivery.place?.ledgerId ?? null;
    const ledger = this.ledgers.get(ledgerId) ?? this.#newLedger(ledgerId);
    ledger.waiting.push(pending);
    this.held.add(pending.delivery.id);
    return ledger;
  }

  /** Whether nothing waits, runs or is known to become due. */
  get isIdle(): boolean {
    return this.held.size === 0 && !this.hasMore && !this.isLoading && this.alarm === null;
  }

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
      owner: this.owner,
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
