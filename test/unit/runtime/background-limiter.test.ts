import { describe, expect, test } from 'vitest';
import { BackgroundLimiter } from '../../../src/runtime/background-limiter.ts';
import { ManualClock } from '../../support/clock.ts';

/** A limiter whose event loop is as busy as the test says. `second` returns the cost that it admits in a second, ms. */
function limited(utilization: number, eventsPerSecond: number, processorShare = 1, fullShare?: number) {
  const clock = new ManualClock(1_000_000);
  const state = { utilization };
  const limiter = new BackgroundLimiter({
    clock,
    monotonicMs: () => clock.now(),
    processorMs: () => clock.now() * processorShare,
    utilization: () => state.utilization,
    busyShare: 0.015,
    ...(fullShare === undefined ? {} : { fullShare }),
  });
  const second = (costMs: number): number => {
    let spent = 0;
    for (let ms = 0; ms < 1_000; ms++) {
      clock.jump(1);
      if (ms % 10 === 0) limiter.committed(eventsPerSecond / 100);
      // At most a hundred pieces a millisecond.
      for (let tries = 0; tries < 100 && limiter.delayMs(costMs) === 0; tries++) spent += costMs;
    }
    return spent;
  };
  return { clock, limiter, second, state };
}

describe('the background limiter', () => {
  test('background work gets 1.5 % of the thread’s processor time while appends saturate the node', () => {
    for (const share of [1, 0.25]) {
      const { second } = limited(0.99, 5_000, share);
      second(0.5);
      expect(second(0.5)).toBeGreaterThan(12.5 * share);
      expect(second(0.5)).toBeLessThan(17.5 * share);
    }
  });

  test.each([
    ['nothing is appended and the loop is busy', 1, 0],
    ['few events are appended and the loop is busy', 1, 400],
    ['many events are appended and the loop is not busy', 0.8, 5_000],
  ])('there is no limit if %s', (_name, utilization, events) => {
    const { second } = limited(utilization, events);
    second(0.5);
    expect(second(0.5)).toBe(50_000);
  });

  test.each([1, 0.25, 0])(
    'it gets its share of the time while few events are appended to a full machine (%f)',
    (processorShare) => {
      const { clock, limiter, second, state } = limited(1, 100, processorShare, 0.3);
      second(0.5);
      expect(second(0.5)).toBeGreaterThan(250);
      expect(second(0.5)).toBeLessThan(350);
      state.utilization = 0.2;
      second(0.5);
      for (let piece = 0; piece < 100; piece++) expect(limiter.delayMs(1)).toBe(0);
      state.utilization = 1;
      limiter.committed(1);
      clock.jump(100);
      for (let piece = 0; piece < 10; piece++) limiter.delayMs(1);
      expect(limiter.delayMs(1)).toBeGreaterThan(0);
    },
  );

  test('it has no such share while nothing is appended', () => {
    const { second } = limited(1, 0, 1, 0.3);
    second(0.5);
    expect(second(0.5)).toBe(50_000);
  });

  test('appends that fill the machine leave it the smaller share, also of what it saved before', () => {
    const { second } = limited(0.99, 5_000, 1, 0.3);
    second(0.5);
    expect(second(0.5)).toBeLessThan(17.5);
  });

  test('the limit holds during calm samples, and ends after half a second of them', () => {
    const { clock, limiter, state } = limited(0.99, 5_000);
    const areLimited = (utilizations: readonly number[]) =>
      utilizations.map((utilization) => {
        state.utilization = utilization;
        clock.jump(100);
        limiter.committed(500);
        // The first piece uses up the budget if there is a limit.
        limiter.delayMs(10);
        return limiter.delayMs(10) > 0;
      });
    expect(areLimited([0.99, 0.8, 0.8, 0.8, 0.8, 0.99, 0.8])).not.toContain(false);
    expect(areLimited([0.99, 0.8, 0.8, 0.8, 0.8, 0.8])).toEqual([true, true, true, true, true, false]);
  });

  test('the limit ends a tenth of a second after the last append', () => {
    const { clock, limiter, second, state } = limited(0.99, 5_000);
    second(0.5);
    while (limiter.delayMs(1) === 0);
    state.utilization = 0.2;
    clock.jump(100);
    for (let piece = 0; piece < 100; piece++) expect(limiter.delayMs(1)).toBe(0);
  });

  test('work that has to wait begins in the end', async () => {
    const { clock, limiter, second } = limited(0.99, 5_000);
    second(1);
    while (limiter.delayMs(10) === 0);
    let done = false;
    const taken = limiter.take(1).then(() => {
      done = true;
    });
    await clock.advance(10);
    expect(done).toBe(false);
    for (let tenth = 0; tenth < 50; tenth++) {
      limiter.committed(500);
      await clock.advance(100);
    }
    await taken;
    expect(done).toBe(true);
  });
});
