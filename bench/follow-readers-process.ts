import { type ChildProcess, fork } from 'node:child_process';
import type { ReadersJob, ReadersReport } from './follow-readers.ts';

/** Followers in a process of their own (follow-readers.ts), while this is not disposed of. */
export class FollowReaders implements Disposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when all of them follow. */
  static async start(job: ReadersJob): Promise<FollowReaders> {
    const child = fork(new URL('./follow-readers.ts', import.meta.url), { execArgv: [] });
    const readers = new FollowReaders(child);
    const { open } = await readers.#ask(job);
    if (open !== job.streams.length) throw new Error(`${open} of ${job.streams.length} streams are open`);
    return readers;
  }

  report(): Promise<ReadersReport> {
    return this.#ask('report');
  }

  #ask(message: ReadersJob | 'report'): Promise<ReadersReport> {
    return new Promise((resolve, reject) => {
      this.#child.once('message', (answer) => resolve(answer as ReadersReport));
      this.#child.once('exit', (code) => reject(new Error(`the readers ended with ${code}`)));
      this.#child.send(message);
    });
  }

  [Symbol.dispose](): void {
    this.#child.removeAllListeners('exit');
    this.#child.disconnect();
  }
}
