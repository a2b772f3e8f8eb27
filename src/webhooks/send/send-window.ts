import { isNew } from '../../service/webhooks/delivery-record.ts';
import type { PendingDelivery } from '../../service/webhooks/due-deliveries.ts';

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

/**
 * Returns the due deliveries that may be sent. A delivery from the log without an attempt may be sent only once its
 * ledger's cursor has passed its event. `position` returns the first seq of a ledger that may lack delivery records.
 */
export async function passedByCursor(
  due: readonly PendingDelivery[],
  position: (ledgerId: string) => Promise<number>,
): Promise<PendingDelivery[]> {
  const positions = new Map<string, number>();
  const passed: PendingDelivery[] = [];
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
