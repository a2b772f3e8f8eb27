import { LedgerError } from '../../domain/errors.ts';

/** Followers of a node that stops come back within this time, each at another moment. */
const comeBackMinMs = 500;
const comeBackMaxMs = 10_000;

export function retryHint(random: (bytes: number) => Uint8Array): { readonly retry_after_ms: number } {
  const [high = 0, low = 0] = random(2);
  const part = (high * 256 + low) / 65_536;
  return { retry_after_ms: Math.round(comeBackMinMs + part * (comeBackMaxMs - comeBackMinMs)) };
}

/** Returns an `unavailable` or `overloaded` with the hint, and any other error as it is. */
export function withRetryHint<T>(error: T, random: (bytes: number) => Uint8Array): T | LedgerError {
  if (!(error instanceof LedgerError) || (error.code !== 'unavailable' && error.code !== 'overloaded')) return error;
  return new LedgerError(error.code, error.message, { ...error.details, ...retryHint(random) }, error);
}
