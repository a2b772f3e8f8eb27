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

/** Runs `step` every `delayMs`, first after that time. Returns what cancels it. */
export function every(clock: Clock, delayMs: number, step: () => void): () => void {
  let cancelTimer = () => {};
  const arm = (): void => {
    cancelTimer = clock.after(delayMs, () => {
      arm();
      step();
    });
  };
  arm();
  return () => cancelTimer();
}

/**
 * Runs `step` now, and again `delayMs` after each end. Returns what cancels it: no run begins afterwards. `step` must
 * not reject.
 */
export function repeat(clock: Clock, delayMs: number, step: () => Promise<void>): () => void {
  let isCancelled = false;
  let cancelTimer = () => {};
  const run = async () => {
    await step();
    if (!isCancelled) cancelTimer = clock.after(delayMs, () => void run());
  };
  void run();
  return () => {
    isCancelled = true;
    cancelTimer();
  };
}
