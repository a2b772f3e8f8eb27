interface StoppableProcess {
  on(event: 'SIGTERM' | 'SIGINT', heard: () => void): unknown;
  exit(code: number): void;
}

export interface StopSignals {
  /** Resolves with the first signal, or with stop(). */
  readonly stopped: Promise<void>;
  readonly isStopping: boolean;
  stop(): void;
  /** The exit code if the process ends before the stop is complete. 1 unless it is set. */
  exitCode: number;
}

/**
 * Handles SIGTERM and SIGINT from now on. The first signal asks for a stop. A second one ends the process at once, and
 * so does a stop that takes longer than `maxMs`. Nothing that was answered is lost by that.
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

/** A node goes on when the reader of its stdout or stderr goes away. */
export function outliveReaders({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  for (const stream of [stdout, stderr]) stream.on('error', () => {});
}
