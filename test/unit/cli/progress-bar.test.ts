import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openLmdb } from '../../../src/store/lmdb/open.ts';
import { inTerminal, whyNoTerminal } from '../../support/pseudo-terminal.ts';
import { cliMain, newShell } from '../../support/shell.ts';

const { dir } = newShell();
const at = (path: string) => new URL(`../../../src/cli/terminal/${path}`, import.meta.url).pathname;

/** Counts to 5 as commands do, in a process of its own. */
const counting = `
import { processTerminal } from '${at('process-terminal.ts')}';
import { progressBar } from '${at('progress-bar.ts')}';
using bar = await progressBar(processTerminal(), '{bar} {value} of {total} events', 5);
for (let n = 0; n < 3; n += 1) bar.add(1);
bar.set(5);
`;
const program = [process.execPath, '--input-type=module', '--eval', counting] as const;

describe('a progress bar', () => {
  const because = whyNoTerminal === null ? '' : ` (${whyNoTerminal})`;

  test.skipIf(whyNoTerminal !== null)(`is drawn on a terminal${because}`, () => {
    const { status, shown } = inTerminal(program);
    expect(status).toBe(0);
    const drawn = [...shown.matchAll(/(\d) of 5 events/g)].map(([, value]) => value);
    expect([drawn[0], drawn.at(-1)]).toEqual(['0', '5']);
  });

  test('is not drawn without a terminal', () => {
    const [command, ...args] = program;
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  test.skipIf(whyNoTerminal !== null)(
    `shows the progress of a backup${because}, and is not drawn for a refused one`,
    async () => {
      const [dataDir, target] = [join(dir, 'data'), join(dir, 'copy')];
      await (await openLmdb({ dataDir, now: Date.now, onFatal: () => {} }))[Symbol.asyncDispose]();
      const backup = () => inTerminal([process.execPath, cliMain, 'backup', target], { DATA_DIR: dataDir });
      const { status, shown } = backup();
      expect(status).toBe(0);
      const drawn = [...shown.matchAll(/(\d+) %/g)].map(([, value]) => value);
      expect([drawn[0], drawn.at(-1)]).toEqual(['0', '100']);
      expect(backup().shown).not.toContain('%');
    },
  );
});
