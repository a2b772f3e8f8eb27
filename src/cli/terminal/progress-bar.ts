import type { Terminal } from './terminal.ts';

interface ProgressBar extends Disposable {
  add(count: number): void;
  set(value: number): void;
}

/**
 * Starts a progress bar on stderr, until it is disposed. `format` is that of cli-progress. Needs a terminal to show.
 */
export async function progressBar(terminal: Terminal, format: string, total: number): Promise<ProgressBar> {
  if (!terminal.isWatched) return { add: () => {}, set: () => {}, [Symbol.dispose]: () => {} };
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({ format, stream: process.stderr, hideCursor: true });
  bar.start(total, 0);
  return {
    add: (count) => bar.increment(count),
    set: (value) => bar.update(value),
    [Symbol.dispose]: () => bar.stop(),
  };
}
