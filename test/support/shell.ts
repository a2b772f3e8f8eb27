import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileCache } from './compile-cache.ts';
import { suiteDir } from './running-node.ts';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export const cliMain = new URL('../../src/cli/main.ts', import.meta.url).pathname;

/** `ledger-trust` as a shell runs it, in a directory that is gone after the tests of this file. */
interface Shell {
  readonly dir: string;
  /** Runs the real command in a process of its own with the given environment only. */
  run(args: readonly string[], input?: string | Buffer, env?: Readonly<Record<string, string>>): Promise<Ended>;
  /** Writes a file, as JSON unless it is text, and returns its path. */
  file(name: string, content: unknown): string;
}

export function newShell(): Shell {
  const dir = suiteDir();
  return {
    dir,
    run: (args, input = '', env = {}) =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [cliMain, ...args], { cwd: dir, env: { ...compileCache, ...env } });
        let out = '';
        let err = '';
        child.stdout.on('data', (chunk) => {
          out += chunk;
        });
        child.stderr.on('data', (chunk) => {
          err += chunk;
        });
        child.on('error', reject);
        child.on('close', (code) => resolve({ code, out, err }));
        child.stdin.end(input);
      }),
    file: (name, content) => {
      const path = join(dir, name);
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
      return path;
    },
  };
}
