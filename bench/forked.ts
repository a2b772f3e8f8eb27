import { type ChildProcess, fork } from 'node:child_process';

/** A script of this folder as a process that answers messages, while this is not disposed of. */
export class Forked<Job, Report> implements Disposable {
  readonly #script: string;
  readonly #child: ChildProcess;

  constructor(script: string) {
    this.#script = script;
    this.#child = fork(new URL(script, import.meta.url), { execArgv: [] });
  }

  /** Sends a job that is not answered. */
  send(job: Job): void {
    this.#child.send(job as object);
  }

  /** Resolves to the next message of the process. */
  ask(job: Job | 'report'): Promise<Report> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`${this.#script} ended with ${code}`));
      this.#child.once('exit', ended);
      this.#child.once('message', (answer) => {
        this.#child.off('exit', ended);
        resolve(answer as Report);
      });
      this.#child.send(job as object);
    });
  }

  [Symbol.dispose](): void {
    this.#child.removeAllListeners('exit');
    this.#child.disconnect();
  }
}
