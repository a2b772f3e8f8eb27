import { expect, test } from 'vitest';
import { type PlantedBug, plantedBugs } from './bugs.ts';
import { runSeed } from './run.ts';

const seedsMax = 500;

/** The first seeds that find the bugs. The search begins there: a change of the simulation only makes it longer. */
const foundBySeed: Readonly<Record<PlantedBug, number>> = {
  unconditional_append: 1,
  stale_refusal: 2,
  foreign_projections_skipped: 4,
  older_projection_wins: 2,
  resubmitted_without_id: 1,
  bucket_begun_unconditionally: 2,
  bucket_unchecked: 5,
  full_bucket_unsettled: 353,
  edge_fed_when_sent: 2,
  signed_before_head_is_durable: 158,
  signed_head_not_compared: 26,
  smaller_head_replaces_larger: 19,
  tile_of_unchecked_rows: 161,
  restored_copy_unmarked: 6,
  head_made_certain_by_claim: 1,
};

test.each(plantedBugs)('%s is found within 500 seeds', { timeout: 120_000 }, async (bug) => {
  const first = foundBySeed[bug] - 1;
  let found: number | null = null;
  for (let count = 0; count < seedsMax && found === null; count++) {
    const seed = 1 + ((first + count) % seedsMax);
    if ((await runSeed(seed, bug)).violations.length > 0) found = seed;
  }
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
