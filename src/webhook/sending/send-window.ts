import { isNew } from '../../service/webhooks/delivery-record.ts';
import type { PendingDelivery } from '../../service/webhooks/due-deliveries.ts';

/** Deliveries of one subscription in memory: where its target answers quickly, and where it does not (yet). */
export const windowQuick = 128;
export const windowSlow = 32;
/** Beyond this many in memory in all, a subscription has no more than this. */
export const heldMax = 16_384;
export const windowTight = 8;

/** How many deliveries of a subscription may be in memory while `held` of all are. */
export function windowOf(isQuick: boolean, held: number): number {
  if (held >= heldMax) return windowTight;
  return isQuick ? windowQuick : windowSlow;
}

/**
 * Those that may be sent: of new ones, those that their ledger's cursor has passed. `position` answers the first seq of a ledger that may
 * lack delivery records.
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
