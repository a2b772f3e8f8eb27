/** Time as a dependency, so that tests and simulations can supply their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Returns what cancels it. Does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}
