import { describe, expect, test } from 'vitest';
import { Pace } from '../../../src/webhooks/pace.ts';
import { ManualClock } from '../../support/clock.ts';

/** A pace whose event loop is as busy as the test says; what it let through in a second, in milliseconds of cost. */
function paced(utilization: number, eventsPerSecond: number, processorShare = 1) {
  const clock = new ManualClock(1_000_000);
  const state = { utilization };
  const pace = new Pace({
    clock,
    monotonicMs: () => clock.now(),
    processorMs: () => clock.now() * processorShare,
    utilization: () => state.utilization,
  });
  const second = (costMs: number): number => {
    let spent = 0;
    for (let ms = 0; ms < 1_000; ms++) {
      clock.jump(1);
      if (ms % 10 === 0) pace.committed(eventsPerSecond / 100);
      // A hundred pieces a millisecond are more than could be done.
      for (let tries = 0; tries < 100 && pace.delayMs(costMs) === 0; tries++) spent += costMs;
    }
    return spent;
  };
  return { clock, pace, second, state };
}

describe('pace', () => {
  test('a busy loop leaves background work 1.5 % of the time, or of what other programs leave to it', () => {
    for (const share of [1, 0.25]) {
      const { second } = paced(0.99, 5_000, share);
      second(0.5);
      expect(second(0.5)).toBeGreaterThan(12.5 * share);
      expect(second(0.5)).toBeLessThan(17.5 * share);
    }
  });

  test.each([
    ['nothing is appended, so the loop is full of deliveries', 1, 0],
    ['there is a little to append, and the loop is full', 1, 400],
    ['much is appended, and the loop has time to spare', 0.8, 5_000],
  ])('no limit where %s', (_name, utilization, events) => {
    const { second } = paced(utilization, events);
    second(0.5);
    expect(second(0.5)).toBe(50_000);
  });

  test('moments to spare between full ones change nothing, and half a second to spare ends it', () => {
    const { clock, pace, state } = paced(0.99, 5_000);
    const tenths = (utilizations: readonly number[]) =>
      utilizations.map((utilization) => {
        state.utilization = utilization;
        clock.jump(100);
        pace.committed(500);
        pace.delayMs(1);
        return pace.isBusy;
      });
    expect(tenths([0.99, 0.8, 0.8, 0.8, 0.8, 0.99, 0.8])).not.toContain(false);
    expect(tenths([0.99, 0.8, 0.8, 0.8, 0.8, 0.8])).toEqual([true, true, true, true, true, false]);
  });

  test('it ends a tenth of a second after nothing is appended any more', () => {
    const { clock, pace, second, state } = paced(0.99, 5_000);
    second(0.5);
    while (pace.delayMs(1) === 0);
    state.utilization = 0.2;
    clock.jump(100);
    for (let piece = 0; piece < 100; piece++) expect(pace.delayMs(1)).toBe(0);
  });

  test('what is taken waits, and gets its turn', async () => {
    const { clock, pace, second } = paced(0.99, 5_000);
    second(1);
    while (pace.delayMs(10) === 0);
    let done = false;
    const taken = pace.take(1).then(() => {
      done = true;
    });
    await clock.advance(10);
    expect(done).toBe(false);
    for (let tenth = 0; tenth < 50; tenth++) {
      pace.committed(500);
      await clock.advance(100);
    }
    await taken;
    expect(done).toBe(true);
  });
});
