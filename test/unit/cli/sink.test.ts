import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fileSink } from '../../../src/cli/terminal/sink.ts';
import { CliError } from '../../../src/cli/terminal/terminal.ts';
import { suiteDir } from '../../support/running-node.ts';

const dir = suiteDir();

test('a full disk fails an export with a sentence and leaves no file', async () => {
  const path = join(dir, 'export.json');
  symlinkSync('/dev/full', `${path}.part`);
  const sink = await fileSink(path);
  // The first line is taken; the write fails when nobody waits for one.
  await expect(
    (async () => {
      for (let line = 0; line < 1_000; line++) {
        await sink.write(`line ${line}`);
        await setImmediate();
      }
    })(),
  ).rejects.toThrow(new CliError(`${path}.part cannot be written: the disk is full.`));
  await expect(sink.keep()).rejects.toThrow(CliError);
  await sink[Symbol.asyncDispose]();
  expect(existsSync(`${path}.part`)).toBe(false);
  expect(existsSync(path)).toBe(false);
});
