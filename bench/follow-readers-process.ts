import type { ReadersJob, ReadersReport } from './follow-readers.ts';
import { Forked } from './forked.ts';

/** Followers in a process of their own (follow-readers.ts), while this is not disposed of. */
export class FollowReaders implements Disposable {
  readonly #process = new Forked<ReadersJob, ReadersReport>('./follow-readers.ts');

  private constructor() {}

  /** Resolves when all of them follow. */
  static async start(job: ReadersJob): Promise<FollowReaders> {
    const readers = new FollowReaders();
    const { open } = await readers.#process.ask(job);
    if (open !== job.streams.length) throw new Error(`${open} of ${job.streams.length} streams are open`);
    return readers;
  }

  report(): Promise<ReadersReport> {
    return this.#process.ask('report');
  }

  [Symbol.dispose](): void {
    this.#process[Symbol.dispose]();
  }
}
