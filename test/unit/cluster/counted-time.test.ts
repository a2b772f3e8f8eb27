import { expect, test } from 'vitest';
import { CountedTime } from '../../../cluster/peers/counted-time.ts';

/**
 * What is counted from 0 to `untilMs`, looked at every 50 ms, while `batches` says how many of this node's have stood
 * and run at a time.
 */
function counted(untilMs: number, batches: (now: number) => { stood: number; running: number }): number {
  let now = 0;
  const time = new CountedTime(() => batches(now), now);
  for (; now < untilMs; now += 50) time.at(now);
  return time.at(now);
}

test.each([
  ['none run', { stood: 0, running: 0 }, 10_000],
  ['one runs and none stands: the first second alone', { stood: 0, running: 1 }, 950],
])('where %s', (_, batches, expected) => {
  expect(counted(10_000, () => batches)).toBe(expected);
});

test('batches that take less than a second each are counted whole', () => {
  expect(counted(10_000, (now) => ({ stood: Math.floor(now / 900), running: 3 }))).toBe(10_000);
});

test('from the moment that one stands everything is counted again', () => {
  expect(counted(10_000, (now) => ({ stood: now < 4_000 ? 0 : 1 + Math.floor(now / 500), running: 1 }))).toBe(7_000);
});

test('time in which nobody looked is not counted: this process did not run', () => {
  const time = new CountedTime(() => ({ stood: 0, running: 0 }), 0);
  expect([time.at(900), time.at(5_000), time.at(5_500)]).toEqual([900, 900, 1_400]);
});
