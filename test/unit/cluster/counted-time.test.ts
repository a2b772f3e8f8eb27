import { expect, test } from 'vitest';
import { CountedTime } from '../../../cluster/peers/counted-time.ts';

/** The time counted from 0 to `untilMs`, looked at every 50 ms. `batches`: this node's batches at a time. */
function counted(untilMs: number, batches: (now: number) => { confirmed: number; running: number }): number {
  let now = 0;
  const time = new CountedTime(() => batches(now), now);
  for (; now < untilMs; now += 50) time.at(now);
  return time.at(now);
}

test.each<[string, (now: number) => { confirmed: number; running: number }, number]>([
  ['is all time while no batch runs', () => ({ confirmed: 0, running: 0 }), 10_000],
  ['is the first second of a batch that does not end', () => ({ confirmed: 0, running: 1 }), 950],
  [
    'is all time if batches take less than a second',
    (now) => ({ confirmed: Math.floor(now / 900), running: 3 }),
    10_000,
  ],
  [
    'continues once a batch has ended',
    (now) => ({ confirmed: now < 4_000 ? 0 : 1 + Math.floor(now / 500), running: 1 }),
    7_000,
  ],
])('the counted time %s', (_, batches, expected) => {
  expect(counted(10_000, batches)).toBe(expected);
});

test('the counted time omits a second without a look, in which this process did not run', () => {
  const time = new CountedTime(() => ({ confirmed: 0, running: 0 }), 0);
  expect([time.at(900), time.at(5_000), time.at(5_500)]).toEqual([900, 900, 1_400]);
});
