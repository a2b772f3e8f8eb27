import type { Terminal } from './terminal.ts';

/** Progress on stderr, if stderr is a terminal. */
interface ProgressBar {
  add(count: number): void;
  set(value: number): void;
  stop(): void;
}

/** Starts a progress bar. `format` is that of cli-progress. Shows nothing if stderr is not a terminal. */
export async function progressBar(terminal: Terminal, format: string, total: number): Promise<ProgressBar> {
  if (!terminal.isWatched) return { add: () => {}, set: () => {}, stop: () => {} };
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true });
  bar.start(total, 0);
  return { add: (count) => bar.increment(count), set: (value) => bar.update(value), stop: () => bar.stop() };
}
