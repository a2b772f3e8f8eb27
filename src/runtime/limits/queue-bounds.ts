const kib = 1024;
const mib = 1024 * kib;

/**
 * What a webhook delivery in memory takes at most, measured: 1.1 KB if no other one is of its block or of its ledger,
 * and its places in the queues.
 */
export const heldDeliveryBytes = 1_536;
/**
 * What an access record that waits takes, measured: 350 bytes, or 550 if it shares no text with others. Only paths
 * longer than those of the API take more, up to 1 KB.
 */
export const accessRecordBytes = 576;

/**
 * Bounds of what a node holds behind its answers. No caller waits for it, so nobody can be refused. It counts in the
 * memory budget as `queue`, and takes room from calls: less than 40 % of it.
 */
interface QueueBounds {
  /** Webhook deliveries in memory beside one of each subscription, which is not counted. */
  readonly deliveriesMax: number;
  /** Delivery blocks that are kept for changes of their deliveries, bytes. */
  readonly deliveryBlocksMaxBytes: number;
  /** Webhook bodies that are kept for further deliveries, bytes. */
  readonly eventBodiesMaxBytes: number;
  /**
   * Access records that wait to be written. An actor with as many records as there are free places loses further ones:
   * alone it fills one half. What is free halves with each such actor. It comes to that only if callers do not wait
   * for their answers.
   */
  readonly accessRecordsMax: number;
  /** From this number on, answers of actors with their equal part of it, or more, wait for room (back-pressure). */
  readonly accessRecordsWait: number;
}

/** `budgetBytes`: the bound of the memory budget. */
export function queueBounds(budgetBytes: number): QueueBounds {
  const accessRecordsMax = Math.min(100_000, Math.floor(budgetBytes / (2.5 * kib)));
  return {
    deliveriesMax: Math.min(16_384, Math.floor(budgetBytes / (16 * kib))),
    deliveryBlocksMaxBytes: Math.min(8 * mib, budgetBytes / 32),
    eventBodiesMaxBytes: Math.min(8 * mib, budgetBytes / 32),
    accessRecordsMax,
    accessRecordsWait: Math.floor(accessRecordsMax / 10),
  };
}
