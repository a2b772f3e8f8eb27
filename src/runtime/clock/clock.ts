/** Time as a dependency, so that tests and simulations can supply their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `delayMs`. The returned function cancels it. Does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** Resolves after `delayMs`. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}
