import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { LoadJob, LoadResult } from './load-job.ts';

/**
 * The load generator, a process of its own, which does one job after the other: clients that append all day have their
 * code compiled, and one that is started for each part of a run would compile it on the server's processors.
 */
export class LoadGenerator implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<number | null>;
  readonly #lines: Interface;

  constructor() {
    this.#child = spawn(process.execPath, [new URL('load-process.ts', import.meta.url).pathname], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** Sends what the job says. Throws where the process ends before it has done so. */
  async run(job: LoadJob): Promise<LoadResult> {
    const answered = new Promise<string>((resolve) => this.#lines.once('line', resolve));
    const ended = this.#ended.then((code) => Promise.reject(new Error(`the load generator ended with ${code}`)));
    this.#child.stdin.write(`${JSON.stringify(job)}\n`);
    return JSON.parse(await Promise.race([answered, ended])) as LoadResult;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}
