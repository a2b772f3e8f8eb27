import type { DeliveryBlock } from './delivery-block.ts';
import type { DeliveryRecord } from './delivery-record.ts';

/** A delivery with what a change of it replaces. */
export interface HeldDelivery {
  readonly delivery: DeliveryRecord;
  /** The block that it stands in; null: it has a record of its own. */
  readonly block: DeliveryBlock | null;
  /** Version of that block or record. */
  readonly version: string;
}

export interface PendingDelivery extends HeldDelivery {
  /** Since when it waits, or when its next attempt is due: ISO, then what sorts those of one time. */
  readonly order: string;
}

/** What is to be sent, and when what is not due yet will be: ISO, never too late; null where nothing waits. */
export interface DueDeliveries {
  readonly due: readonly PendingDelivery[];
  readonly next: string | null;
}

/** The earlier of two times, where there are any. */
export function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
