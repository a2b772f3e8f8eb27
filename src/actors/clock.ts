/** Time, as an argument: tests and simulations bring their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `delayMs`, unless the answer is called before. Does not keep the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** Resolves after `delayMs`. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}
