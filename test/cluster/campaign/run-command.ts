import { execFile } from 'node:child_process';
import { compileCache } from '../../support/compile-cache.ts';

/** JSON with all findings may be long. */
const outMaxBytes = 64 * 1024 * 1024;

export interface CommandEnd {
  /** null: the command was ended because it took too long, or it did not start. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line of this project with this node and a minimal environment. */
export function runCommand(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  maxMs: number,
): Promise<CommandEnd> {
  const { PATH = '', HOME = '' } = process.env;
  const options = { env: { PATH, HOME, ...compileCache, ...env }, timeout: maxMs, maxBuffer: outMaxBytes };
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], options, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ code, out, err: code === null ? `${err}${error?.message ?? ''}` : err });
    });
  });
}
