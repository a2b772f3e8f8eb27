import { type ChildProcess, fork } from 'node:child_process';

/** A script of this folder as a process that does one job after the other, while this is not disposed of. */
export class Forked<Job, Result> implements Disposable {
  readonly #script: string;
  readonly #child: ChildProcess;

  constructor(script: string) {
    this.#script = script;
    // A profile is of the process that it was asked for: its flags are not for this one.
    this.#child = fork(new URL(script, import.meta.url), { execArgv: [] });
  }

  /** Ask once the last answer has come. Rejects if the process ends before it has answered. */
  ask(job: Job): Promise<Result> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`${this.#script} ended with ${code}`));
      this.#child.once('exit', ended);
      this.#child.once('message', (answer) => {
        this.#child.off('exit', ended);
        resolve(answer as Result);
      });
      this.#child.send(job as object);
    });
  }

  [Symbol.dispose](): void {
    this.#child.removeAllListeners('exit');
    // Of a process that has ended, the channel is closed too.
    if (this.#child.connected) this.#child.disconnect();
  }
}

/** Runs a script of this folder as a process for one job. */
export async function runForked<Job, Result>(script: string, job: Job): Promise<Result> {
  using forked = new Forked<Job, Result>(script);
  return await forked.ask(job);
}

/** What such a script calls: answers each job, and ends the process when nobody can ask any more. */
export function answerJobs<Job, Result extends object>(answer: (job: Job) => Result | Promise<Result>): void {
  process.on('message', async (job) => process.send?.(await answer(job as Job)));
  process.on('disconnect', () => process.exit(0));
}
