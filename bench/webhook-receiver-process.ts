import { type ChildProcess, fork } from 'node:child_process';
import { sumOf } from './sum.ts';
import type { ReceiverKind, ReceiverReport } from './webhook-receivers.ts';

/** Receivers in a process of their own (webhook-receivers.ts). */
export class Receivers {
  readonly #child: ChildProcess;
  readonly urls: readonly string[];

  private constructor(child: ChildProcess, urls: readonly string[]) {
    this.#child = child;
    this.urls = urls;
  }

  static async start(kinds: readonly ReceiverKind[]): Promise<Receivers> {
    // A profile is of the node: its flags are not for this process.
    const child = fork(new URL('./webhook-receivers.ts', import.meta.url), kinds, { execArgv: [] });
    const { urls } = await nextMessage<{ urls: string[] }>(child);
    return new Receivers(child, urls);
  }

  async reports(): Promise<ReceiverReport[]> {
    this.#child.send('report');
    return (await nextMessage<{ reports: ReceiverReport[] }>(this.#child)).reports;
  }

  /** Different events that all of them got. */
  async received(): Promise<number> {
    return sumOf(await this.reports(), (report) => report.received);
  }

  stop(): void {
    this.#child.disconnect();
  }
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve) => child.once('message', (message) => resolve(message as T)));
}
