/**
 * Milliseconds. Further signals this soon after the first one are the same request. Ctrl-C under npm is two signals:
 * the terminal sends SIGINT to npm and to its child process, and npm forwards its own to the child process. That takes
 * npm a few milliseconds, and some hundred on a busy machine. A user who repeats Ctrl-C because a stop takes long does
 * so later.
 */
export const sameRequestMs = 500;

interface StoppableProcess {
  on(event: 'SIGTERM' | 'SIGINT', heard: () => void): unknown;
  exit(code: number): void;
}

export interface StopSignals {
  /** Resolves with the first signal, or with stop(). */
  readonly stopped: Promise<void>;
  readonly isStopping: boolean;
  stop(): void;
  /** Ends the process if it still runs `maxMs` after the stop was requested. Call it once. */
  endWithin(maxMs: number): void;
  /** The exit code if the process ends before the stop is complete. 1 unless it is set. */
  exitCode: number;
}

/**
 * Handles SIGTERM and SIGINT from now on. The first signal asks for a stop. A further one that comes later than
 * `sameRequestMs` ends the process at once. Nothing that was answered is lost by that.
 *
 * A program calls it before it loads anything large, so this file imports nothing: as process 1 of a container, a
 * program never gets a signal that it did not handle when the signal was sent.
 */
export function hearStopSignals(process: StoppableProcess): StopSignals {
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  let wasHeard = false;
  let endsAtOnce = false;
  const signals = {
    stopped,
    isStopping: false,
    exitCode: 1,
    stop: () => {
      if (signals.isStopping) return;
      signals.isStopping = true;
      resolve();
    },
    endWithin: (maxMs: number) =>
      void stopped.then(() => setTimeout(() => process.exit(signals.exitCode), maxMs).unref()),
  };
  const hear = () => {
    if (endsAtOnce) process.exit(signals.exitCode);
    if (wasHeard) return;
    wasHeard = true;
    // The immediate runs after the signals that came while the thread was busy.
    setTimeout(() => setImmediate(() => (endsAtOnce = true)), sameRequestMs).unref();
    signals.stop();
  };
  process.on('SIGTERM', hear);
  process.on('SIGINT', hear);
  return signals;
}

/** A node goes on when the reader of its stdout or stderr goes away. */
export function outliveReaders({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>): void {
  for (const stream of [stdout, stderr]) stream.on('error', () => {});
}
