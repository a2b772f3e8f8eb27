import { rmSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { crashAmongCreations, newCreatorsWorld } from '../support/creations.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { temporaryDir } from '../support/running-node.ts';

const dataDir = temporaryDir();
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const sumOf = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

test('whatever the moment of the crash, a retry makes no second one and gives the same ids and secrets', {
  timeout: 90_000,
}, async () => {
  let node: NodeProcess = await startNodeProcess({ DATA_DIR: dataDir });
  const world = await newCreatorsWorld(node.base);
  const crashes: Awaited<ReturnType<typeof crashAmongCreations>>[] = [];
  for (let round = 0; round < 3; round += 1) {
    const crashed = await crashAmongCreations(world, round, {
      base: node.base,
      afterMs: 3 + 6 * round,
      crash: async () => {
        await node.kill();
        node = await startNodeProcess({ DATA_DIR: dataDir });
        return { again: node.base, onceMore: node.base };
      },
    });
    crashes.push(crashed);
  }
  // Otherwise no crash hit a call under way, and nothing was shown.
  expect(sumOf(crashes.map(({ unanswered }) => unanswered))).toBeGreaterThanOrEqual(crashes[0]?.calls ?? Number.NaN);
  expect(sumOf(crashes.map(({ hit }) => hit))).toBeGreaterThan(0);
  await node.kill();
});
