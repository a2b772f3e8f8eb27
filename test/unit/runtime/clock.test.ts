import { expect, test } from 'vitest';
import { every } from '../../../src/runtime/clock/clock.ts';
import { ManualClock } from '../../support/clock.ts';

test('a repeated step runs after each interval until it is cancelled, by itself too', async () => {
  const clock = new ManualClock(0);
  const runs: number[] = [];
  const cancel = every(clock, 10, () => {
    runs.push(clock.now());
    if (runs.length === 3) cancel();
  });
  await clock.advance(100);
  expect([runs, clock.timers]).toEqual([[10, 20, 30], 0]);
});
