/** Before the attempts of a webhook delivery. Each begins at the end of the attempt before. */
export const deliveryWaitsMs = [0, 30_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000] as const;

/** After `attempts` failed ones. null if none is left. */
export function nextAttemptMs(attempts: number, endedMs: number): number | null {
  const wait = deliveryWaitsMs[attempts];
  return wait === undefined ? null : endedMs + wait;
}
