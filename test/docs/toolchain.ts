import { execFile, spawnSync } from 'node:child_process';
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

/** Installs packages into a folder. Returns the environment in which python3 finds them. */
export async function pythonPackages(folder: string, ...packages: readonly string[]): Promise<NodeJS.ProcessEnv> {
  // A virtual environment would first install pip itself, which takes longer.
  const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', folder, ...packages];
  await promisify(execFile)('python3', args, { maxBuffer: 1e7 });
  return { ...process.env, PYTHONPATH: folder };
}
