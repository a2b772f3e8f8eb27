import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { renameDurably } from '../../client/proofs/durable-rename.ts';
import { outputError, type Terminal } from './terminal.ts';

export type Write = (line: string) => Promise<void>;

/** Where lines are written to. Disposing removes output that was not kept. */
export interface Sink extends AsyncDisposable {
  readonly write: Write;
  /** Completes the output, after everything was written. */
  keep(): Promise<void>;
}

export function stdoutSink(terminal: Terminal): Sink {
  return { write: (line) => terminal.print(`${line}\n`), keep: async () => {}, [Symbol.asyncDispose]: async () => {} };
}

/** Writes to a temporary file and renames it when it is complete. Throws CliError (exit code 74). */
export async function fileSink(path: string): Promise<Sink> {
  // A name that nobody else has, so that two commands for one path do not write into one file, nor follow a link.
  const part = `${path}.${randomUUID()}.part`;
  const file = createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true });
  await once(file, 'open').catch(failed(path));
  // A failed write is reported with the next line, because nothing waits for it in between.
  file.on('error', () => {});
  let kept = false;
  return {
    write: async (line) => {
      if (file.errored !== null) throw outputError(path, file.errored);
      if (!file.write(`${line}\n`)) await once(file, 'drain').catch(failed(path));
    },
    keep: async () => {
      file.end();
      await finished(file).catch(failed(path));
      await renameDurably(part, path).catch(failed(path));
      kept = true;
    },
    [Symbol.asyncDispose]: async () => {
      if (kept) return;
      file.destroy();
      await rm(part, { force: true });
    },
  };
}

const failed = (path: string) => (error: unknown) => Promise.reject(outputError(path, error));
