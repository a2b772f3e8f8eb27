import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';

const whyNot = spawnSync('script', ['--version']).status === 0 ? null : 'script of util-linux is not installed';
const at = (path: string) => new URL(`../../src/cli/${path}`, import.meta.url).pathname;

/** Counts to 5 as commands do, in a process of its own. */
const counting = `
import { processTerminal } from '${at('process-terminal.ts')}';
import { progressBar } from '${at('progress-bar.ts')}';
const bar = await progressBar(processTerminal(), '{bar} {value} of {total} events', 5);
for (let n = 0; n < 3; n += 1) bar.add(1);
bar.set(5);
bar.stop();
`;
const program = [process.execPath, '--input-type=module', '--eval', counting] as const;

describe('a bar of progress', () => {
  test.skipIf(whyNot !== null)(`is drawn on a terminal that is watched${whyNot === null ? '' : ` (${whyNot})`}`, () => {
    const [command = '', ...args] = program.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
    const { status, stdout } = spawnSync('script', ['-qec', [command, ...args].join(' '), '/dev/null'], {
      encoding: 'utf8',
      env: { ...process.env, TERM: 'xterm' },
    });
    expect(status).toBe(0);
    const drawn = [...stdout.matchAll(/(\d) of 5 events/g)].map(([, value]) => value);
    expect([drawn[0], drawn.at(-1)]).toEqual(['0', '5']);
  });

  test('is not drawn where nobody watches', () => {
    const [command, ...args] = program;
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});
