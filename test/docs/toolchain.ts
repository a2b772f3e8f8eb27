import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Runs a test that needs a program. Where there is none, it is skipped and says so, or fails if REQUIRE_BACKENDS=1. */
export function testWith(
  program: 'python3' | 'go',
  title: string,
  run: () => void | Promise<void>,
  timeoutMs?: number,
): void {
  const version = program === 'go' ? 'version' : '--version';
  if (spawnSync(program, [version]).status === 0) {
    test(title, run, timeoutMs);
    return;
  }
  const missing = `${title}: there is no ${program} here`;
  if (process.env.REQUIRE_BACKENDS === '1') {
    test(missing, () => {
      throw new Error(missing);
    });
  } else test.skip(missing, () => {});
}

/**
 * Runs a program that reads `input` as JSON and writes nothing to stderr. Returns the JSON of each line that it writes.
 */
export function jsonLinesOf(
  program: 'python3' | 'go',
  args: readonly string[],
  input: unknown,
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): unknown[] {
  const { stdout, stderr } = spawnSync(program, args, { ...options, input: JSON.stringify(input), encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/**
 * Installs packages for the python3 of this machine, unless an earlier run did. Returns the environment in which
 * python3 finds them. They are kept beside the client generators.
 */
export async function pythonPackages(...packages: readonly string[]): Promise<NodeJS.ProcessEnv> {
  const run = promisify(execFile);
  const { stdout: python } = await run('python3', ['-VV']);
  const cache = process.env.GENERATORS_CACHE ?? join(tmpdir(), 'ledger-trust-generators');
  const name = createHash('sha256')
    .update([python, ...packages].join('\n'))
    .digest('hex')
    .slice(0, 16);
  const folder = join(cache, 'python-packages', name);
  if (!existsSync(folder)) {
    await mkdir(dirname(folder), { recursive: true });
    const unfinished = await mkdtemp(`${folder}-`);
    // A virtual environment would first install pip itself, which takes longer.
    const args = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--target',
      unfinished,
      ...packages,
    ];
    await run('python3', args, { maxBuffer: 1e7 });
    // Another run that installed the same meanwhile was first.
    await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true }));
  }
  return { ...process.env, PYTHONPATH: folder };
}
