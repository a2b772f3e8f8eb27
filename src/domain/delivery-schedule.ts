/** Waits before the attempts of a webhook delivery, each counted from the end of the attempt before (spec, Limits). */
export const deliveryWaitsMs = [0, 30_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000] as const;

/**
 * When the next attempt is due after `attempts` that failed, the last of them at `endedMs` (both in milliseconds since 1970); null
 * where there is none left.
 */
export function nextAttemptMs(attempts: number, endedMs: number): number | null {
  const wait = deliveryWaitsMs[attempts];
  return wait === undefined ? null : endedMs + wait;
}
