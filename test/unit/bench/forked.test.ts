import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { Forked } from '../../../bench/forked.ts';
import { suiteDir } from '../../support/running-node.ts';

const dir = suiteDir();

test('a process that ended before its answer is told, also once its channel has closed', async () => {
  const script = join(dir, 'ends.mjs');
  writeFileSync(script, "process.on('message', () => process.exit(3));");
  const { href } = pathToFileURL(script);
  const run = async () => {
    using forked = new Forked(href);
    try {
      return await forked.ask({});
    } finally {
      await delay(200);
    }
  };
  await expect(run()).rejects.toThrow(`${href} ended with 3`);
});
