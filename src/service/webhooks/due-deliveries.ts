import type { DeliveryRecord } from './delivery-record.ts';

/** A delivery as it waits in memory, with what finds the record to change. Thousands of them are held. */
export interface HeldDelivery {
  readonly delivery: DeliveryRecord;
  /** null: the delivery has a record of its own. */
  readonly blockId: string | null;
  /** Of the record when it was read. */
  readonly version: string;
}

/** The deliveries to send now, and when the next one will be due: ISO, never too late. null if none waits. */
export interface DueDeliveries {
  readonly due: readonly HeldDelivery[];
  readonly next: string | null;
}

export function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
