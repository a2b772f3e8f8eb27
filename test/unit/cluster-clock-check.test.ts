import { describe, expect, test } from 'vitest';
import { ClockCheck, clockOff } from '../../cluster/clock-check.ts';
import type { CqlSession } from '../../src/store/cassandra/session.ts';

describe('clocks', () => {
  test.each([
    // before, there, after: certain is only what lies outside of the time that the look took
    [1_000, 1_000, 1_400, 0],
    [1_000, 1_400, 1_400, 0],
    [1_000, 900, 1_400, 100],
    [1_000, 1_450, 1_400, 50],
  ])('asked from %d, there %d, heard at %d: off by %d ms', (before, there, after, offMs) => {
    expect(clockOff(before, there, after)).toBe(offMs);
  });
});

describe('a store that is looked at', () => {
  /** A store that says `storeNow`, or nothing. */
  function lookedAt() {
    const now = { here: 5_000, monotonicMs: 0, storeNow: 5_700 as number | null };
    const read = async () => {
      if (now.storeNow === null) throw new Error('nobody there');
      return [{ now: new Date(now.storeNow) }];
    };
    const check = new ClockCheck(
      { read } as Partial<CqlSession> as CqlSession,
      () => now.here,
      () => now.monotonicMs,
    );
    return { now, check };
  }

  test('is silent from the last look that it answered, and its clock is then the one that was found last', async () => {
    const { now, check } = lookedAt();
    expect([check.offMs, check.silentMs]).toEqual([null, 0]);
    now.monotonicMs = 2_000;
    await check.look();
    expect([check.offMs, check.silentMs]).toEqual([700, 0]);
    now.storeNow = null;
    now.monotonicMs = 9_000;
    await check.look();
    expect([check.offMs, check.silentMs]).toEqual([700, 7_000]);
    now.storeNow = 5_000;
    await check.look();
    expect([check.offMs, check.silentMs]).toEqual([0, 0]);
  });

  test('that never answers is silent from the start', async () => {
    const { now, check } = lookedAt();
    now.storeNow = null;
    now.monotonicMs = 12_000;
    await check.look();
    expect([check.offMs, check.silentMs]).toEqual([null, 12_000]);
  });
});
