import { spawnSync } from 'node:child_process';
import { test } from 'vitest';

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
