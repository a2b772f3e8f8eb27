import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { CliError, reasonOf, type Terminal } from './terminal.ts';

export type Write = (line: string) => Promise<void>;

/** Where lines are written to. */
interface Sink {
  readonly write: Write;
  /** Completes the output, after everything was written. */
  keep(): Promise<void>;
  /** Ends the sink. Removes output that was not kept. */
  drop(): Promise<void>;
}

export function stdoutSink(terminal: Terminal): Sink {
  return { write: (line) => terminal.print(`${line}\n`), keep: async () => {}, drop: async () => {} };
}

/**
 * Writes to a temporary file and renames it when it is complete. `write` and `keep` throw CliError if the file cannot
 * be written.
 */
export async function fileSink(path: string): Promise<Sink> {
  const part = `${path}.part`;
  const file = createWriteStream(part, { mode: 0o600, flush: true });
  try {
    await once(file, 'open');
  } catch (error) {
    throw notWritten(part, error);
  }
  // A failed write is reported with the next line, because nothing waits for it in between.
  file.on('error', () => {});
  let kept = false;
  return {
    write: async (line) => {
      try {
        if (file.errored !== null) throw file.errored;
        if (!file.write(`${line}\n`)) await once(file, 'drain');
      } catch (error) {
        throw notWritten(part, error);
      }
    },
    keep: async () => {
      try {
        file.end();
        await finished(file);
      } catch (error) {
        throw notWritten(part, error);
      }
      try {
        await rename(part, path);
      } catch (error) {
        throw notWritten(path, error);
      }
      kept = true;
    },
    drop: async () => {
      if (kept) return;
      file.destroy();
      await rm(part, { force: true });
    },
  };
}

function notWritten(path: string, error: unknown): CliError {
  return new CliError(`${path} cannot be written: ${reasonOf(error)}.`);
}
