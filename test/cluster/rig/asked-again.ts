import { vi } from 'vitest';

/**
 * Asks again until it succeeds, for up to 20 s, as clients do: for what a test needs before it begins, of a cluster whose store may answer
 * late on a busy machine. What is made twice has to be no harm.
 */
export function askedAgain<T>(work: () => Promise<T>): Promise<T> {
  return vi.waitFor(work, { timeout: 20_000, interval: 200 });
}
