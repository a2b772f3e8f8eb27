import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { notFoundExitCode, withTimerSlack } from '../../../cluster/local/timer-slack.ts';

const run = (...[command, args]: [string, string[]]) => spawnSync(command, args, { encoding: 'utf8' });

test('a command runs with its arguments and its exit code', () => {
  const script = 'printf "%s|" "$@"; exit 7';
  const { stdout, stderr, status } = run(...withTimerSlack(500_000, 'sh', ['-c', script, 'sh', 'a b', '', '$c']));
  expect({ stdout, stderr, status }).toEqual({ stdout: 'a b||$c|', stderr: '', status: 7 });
});

test('a missing command has its own exit code', () => {
  expect(run(...withTimerSlack(500_000, 'no-such-command', [])).status).toBe(notFoundExitCode);
});

test.runIf(process.platform === 'linux')('a command and its child processes have the slack', () => {
  const read = 'read -r own </proc/self/timerslack_ns; cat /proc/self/timerslack_ns; echo "$own"';
  expect(run(...withTimerSlack(345_678, 'sh', ['-c', read])).stdout).toBe('345678\n345678\n');
});
