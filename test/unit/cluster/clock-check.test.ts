import { describe, expect, test } from 'vitest';
import { ClockCheck, checkClock, clockAhead, isClockRight } from '../../../cluster/clock-check.ts';
import { StartError } from '../../../src/runtime/start-error.ts';

describe('a check of the store’s clock', () => {
  /** A check of a store whose clock is `storeNow`. null: the store does not answer. */
  function lookedAt() {
    const now = { here: 5_000, monotonicMs: 0, storeNow: 5_700 as number | null };
    const storeTime = async () => {
      if (now.storeNow === null) throw new Error('nobody there');
      return now.storeNow;
    };
    const check = new ClockCheck(
      storeTime,
      () => now.here,
      () => now.monotonicMs,
    );
    const pass = (ms: number) => {
      now.here += ms;
      now.monotonicMs += ms;
      if (now.storeNow !== null) now.storeNow += ms;
    };
    return { now, check, pass };
  }

  test('keeps its last result while the store is silent', async () => {
    const { now, check, pass } = lookedAt();
    expect([check.aheadMs, check.silentMs]).toEqual([null, 0]);
    pass(2_000);
    await check.look();
    expect([check.aheadMs, check.silentMs]).toEqual([-700, 0]);
    now.storeNow = null;
    pass(7_000);
    await check.look();
    expect([check.aheadMs, check.silentMs]).toEqual([-700, 7_000]);
    now.storeNow = now.here;
    await check.look();
    expect([check.aheadMs, check.silentMs]).toEqual([0, 0]);
  });

  test('counts the silence of a store that never answered from the start', async () => {
    const { now, check } = lookedAt();
    now.storeNow = null;
    now.monotonicMs = 12_000;
    await check.look();
    expect([check.aheadMs, check.silentMs]).toEqual([null, 12_000]);
  });

  test('notices at once that the node’s clock is set', async () => {
    const { now, check, pass } = lookedAt();
    now.storeNow = now.here;
    for (let look = 0; look < 3; look++) {
      pass(2_000);
      await check.look();
    }
    expect(check.aheadMs).toBe(0);
    now.here += 3_600_000;
    expect(check.aheadMs).toBe(3_600_000);
    now.here -= 3_600_000 + 900;
    expect(check.aheadMs).toBe(-900);
    now.here += 900;
    expect(check.aheadMs).toBe(0);
  });

  test('ignores one wrong server of three, and follows a drift within two looks', async () => {
    const { now, check, pass } = lookedAt();
    now.storeNow = now.here;
    for (let look = 0; look < 6; look++) {
      pass(2_000);
      const right: number = now.storeNow ?? 0;
      if (look % 3 === 2) now.storeNow = right + 60_000;
      await check.look();
      now.storeNow = right;
      expect(check.aheadMs).toBe(0);
    }
    now.storeNow = (now.storeNow ?? 0) - 700;
    await check.look();
    await check.look();
    expect(check.aheadMs).toBe(700);
  });
});

test.each([
  [1_000, 1_000, 1_400, 0],
  [1_000, 1_400, 1_400, 0],
  [1_000, 900, 1_400, 100],
  [1_000, 1_450, 1_400, -50],
  [1_000, 1_200, 1_400, 0],
])(
  'this clock shows %d, the other one %d, then this one %d: this one is ahead by %d ms',
  (before, there, after, aheadMs) => {
    expect(clockAhead(before, there, after)).toBe(aheadMs);
  },
);

describe('a node may decide', () => {
  const member = (id: string, clockAheadMs?: number) => ({
    id,
    address: 'a:1',
    startedAt: 't',
    shardCount: 4,
    draining: false,
    order: null,
    ...(clockAheadMs === undefined ? {} : { clockAheadMs }),
  });
  test.each([
    ['before it has looked', null, [0, 0], false],
    ['with a clock that is right', 500, [0, 0], true],
    ['with a clock that is off, while another node is right', 700, [0, 700], false],
    ['with a clock that is off, while another node does not tell its own', 700, [undefined, 700], false],
    ['with a clock that is off, alone', 700, [], false],
    ['with a clock that is off, while others are off by another time', 9_000, [700, 700], false],
    ['with a clock that is off, while others are off the other way', 700, [-700], false],
    ['with a clock that all others have too: the store is wrong then', 60_000, [60_100, 59_700], true],
  ])('%s', (_, aheadMs, others, isRight) => {
    const members = [member('self', 0), ...others.map((ms, at) => member(`other-${at}`, ms))];
    expect(isClockRight(aheadMs, members, 'self')).toBe(isRight);
  });
});

test.each([
  [-301_000, '301 s behind that of Cassandra'],
  [301_000, '301 s ahead of that of Cassandra'],
  [-299_000, null],
  [299_000, null],
])('a command whose clock is %i ms ahead of the store’s is told: %s', async (aheadMs, sentence) => {
  const checked = checkClock(
    async () => 1_000_000,
    () => 1_000_000 + aheadMs,
  );
  if (sentence === null) return checked;
  await expect(checked).rejects.toThrow(sentence);
  await expect(checked).rejects.toBeInstanceOf(StartError);
});
