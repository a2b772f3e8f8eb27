import { expect, test } from 'vitest';
import { plantedBugs } from './bugs.ts';
import { runSeed } from './run.ts';

const seedsMax = 500;

test.each(plantedBugs)('%s is found', { timeout: 120_000 }, async (bug) => {
  let found: number | null = null;
  for (let seed = 1; seed <= seedsMax && found === null; seed++)
    if ((await runSeed(seed, bug)).violations.length > 0) found = seed;
  expect(found).not.toBeNull();
});

test('a seed replays exactly', async () => {
  for (const seed of [3, 4]) {
    const [first, again] = [await runSeed(seed), await runSeed(seed)];
    expect(again).toEqual(first);
    expect(first.transcript.split('\n').length).toBeGreaterThan(250);
  }
  expect((await runSeed(5)).transcript).not.toBe((await runSeed(6)).transcript);
});
