import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { testDir } from '../../support/running-node.ts';

/**
 * The last line of `.ci/run`. What vitest 5 reports was looked at in runs whose workers were killed, and is told here
 * as it was.
 */

type File = readonly [outcome: 'passed' | 'failed', ...tests: string[]];

/** The line and the exit status for a report; null: vitest wrote none. */
function summary(files: readonly File[] | null, status = '1', leftOut = 0): [line: string, exit: number | null] {
  const dir = testDir();
  mkdirSync(join(dir, 'test/unit'), { recursive: true });
  const nameOf = (at: number) => join(dir, `test/unit/${at}.test.ts`);
  const count = (files?.length ?? 0) + leftOut;
  for (let at = 0; at < count; at++) writeFileSync(nameOf(at), '');
  const testResults = files?.map(([outcome, ...tests], at) => ({
    name: nameOf(at),
    status: outcome,
    assertionResults: tests.map((one) => ({ status: one })),
  }));
  const report = join(dir, 'report.json');
  writeFileSync(report, testResults === undefined ? '' : JSON.stringify({ testResults }));
  const run = spawnSync(process.execPath, [resolve('.ci/summary.mjs'), report, status], { cwd: dir, encoding: 'utf8' });
  expect(run.stderr).toBe('');
  return [run.stdout.trim(), run.status];
}

const good: File = ['passed', 'passed', 'passed'];

test.each<[string, readonly File[], string, string, number]>([
  ['what passed', [good, good], '0', '4 passed, 0 failed', 0],
  ['a test that failed', [good, ['failed', 'passed', 'failed']], '1', '3 passed, 1 failed', 1],
  [
    'a worker that died at its second test',
    [good, ['failed', 'passed', 'pending', 'pending']],
    '1',
    '3 passed, 2 failed',
    1,
  ],
  ['a worker that died before its first test', [good, ['failed']], '1', '2 passed, 1 failed', 1],
  ['a file that did not load', [['failed'], ['failed'], good], '1', '2 passed, 2 failed', 1],
  ['a hook that threw', [good, ['failed', 'skipped', 'skipped']], '1', '2 passed, 2 failed', 1],
  ['a hook that threw in one group', [['failed', 'passed', 'skipped']], '1', '1 passed, 1 failed', 1],
  ['a test left out on purpose', [['passed', 'passed', 'skipped', 'todo']], '0', '1 passed, 0 failed, 2 skipped', 1],
  ['one left out beside one that failed', [['failed', 'failed', 'skipped']], '1', '0 passed, 1 failed, 1 skipped', 1],
  ['an error outside of all tests', [good], '1', '2 passed, 1 failed', 1],
  ['nothing that ran', [], '0', '0 passed, 1 failed', 1],
])('a report with %s is summarized', (_name, files, status, line, exit) => {
  expect(summary(files, status)).toEqual([line, exit]);
});

test('files that the report omits have failed', () => {
  expect(summary([good], '0', 2)).toEqual(['2 passed, 2 failed', 1]);
});

test('a run without a report has failed', () => {
  expect(summary(null)).toEqual(['0 passed, 1 failed', 1]);
  expect(summary(null, '137', 3)).toEqual(['0 passed, 3 failed', 1]);
});
