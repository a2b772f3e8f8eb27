import { rmSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { crashAmongCreations, crashTimes, newCreatorsWorld } from '../support/creations.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { temporaryDir } from '../support/running-node.ts';

const dataDir = temporaryDir();
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

test('whatever the moment of the crash, a retry makes no second one and gives the same ids and secrets', {
  timeout: 240_000,
}, async () => {
  let node: NodeProcess = await startNodeProcess({ DATA_DIR: dataDir });
  const world = await newCreatorsWorld(node.base);
  let [unanswered, hit, kinds] = [0, 0, 0];
  for (const [round, afterMs] of crashTimes(3, 3, () => unanswered >= kinds && hit > 0)) {
    const crashed = await crashAmongCreations(world, round, {
      base: node.base,
      afterMs,
      crash: async () => {
        await node.kill();
        node = await startNodeProcess({ DATA_DIR: dataDir });
        return { again: node.base, onceMore: node.base };
      },
    });
    unanswered += crashed.unanswered;
    hit += crashed.hit;
    kinds = crashed.calls;
  }
  // Otherwise no crash hit a call under way, and nothing was shown.
  expect(unanswered).toBeGreaterThanOrEqual(kinds);
  expect(hit).toBeGreaterThan(0);
  await node.kill();
});
