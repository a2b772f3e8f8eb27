import type { DeliveryBlock } from './delivery-block.ts';
import type { DeliveryRecord } from './delivery-record.ts';

/** A delivery, with what a change of it replaces. */
export interface HeldDelivery {
  readonly delivery: DeliveryRecord;
  readonly block: DeliveryBlock | null;
  readonly version: string;
}

export interface PendingDelivery extends HeldDelivery {
  /** Sort key: since when the delivery waits, or when its next attempt is due (ISO), followed by its ledger and seq. */
  readonly order: string;
}

/** The deliveries to send now, and when the next one will be due: ISO, never too late. null if none waits. */
export interface DueDeliveries {
  readonly due: readonly PendingDelivery[];
  readonly next: string | null;
}

export function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
