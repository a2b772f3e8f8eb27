/** What is heard and ended: the process. */
export interface StoppableProcess {
  on(event: 'SIGTERM' | 'SIGINT', heard: () => void): unknown;
  exit(code: number): void;
}

export interface StopSignals {
  /** Resolves with the first signal, or with stop(). */
  readonly stopped: Promise<void>;
  readonly isStopping: boolean;
  stop(): void;
  /** What the process ends with where it is ended as it is. 1 if nothing else is said. */
  exitCode: number;
}

/**
 * Hears SIGTERM and SIGINT from now on. The first of them asks for a stop; a second one, whichever, ends the process at once, and so does a
 * stop that takes longer than `maxMs`: nothing answered is lost by that.
 */
export function hearStopSignals(process: StoppableProcess, maxMs: number): StopSignals {
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  let count = 0;
  const signals = {
    stopped,
    isStopping: false,
    exitCode: 1,
    stop: () => {
      if (signals.isStopping) return;
      signals.isStopping = true;
      setTimeout(() => process.exit(signals.exitCode), maxMs).unref();
      resolve();
    },
  };
  const hear = () => {
    count += 1;
    if (count > 1) process.exit(signals.exitCode);
    else signals.stop();
  };
  process.on('SIGTERM', hear);
  process.on('SIGINT', hear);
  return signals;
}

/** A reader of stdout or stderr that goes away is no failure of a node. */
export function outliveReaders({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  for (const stream of [stdout, stderr]) stream.on('error', () => {});
}
