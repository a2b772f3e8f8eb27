import { expect, test } from 'vitest';
import { GroupGrowth } from '../../../src/actors/batching/group-growth.ts';
import { ManualClock } from '../../support/clock.ts';
import { startMs } from '../../support/world.ts';

const quietMs = 60;

/** Groups of which the test says how large they are, and for how long nothing joins them. */
function growthUnderTest() {
  const clock = new ManualClock(startMs);
  const growth = new GroupGrowth(clock, quietMs);
  /** Whether the next turn's group of so many is whole before it has stopped growing, after which it stops. */
  const isWholeAtOnce = (size: number): boolean => {
    growth.start();
    const isWhole = growth.isWhole(size);
    if (!isWhole) {
      clock.jump(quietMs);
      expect(growth.isWhole(size)).toBe(true);
      expect(growth.isWhole(size)).toBe(true);
    }
    return isWhole;
  };
  return { clock, growth, isWholeAtOnce };
}

test('a group is whole once nothing has joined it for a while', () => {
  const { clock, growth } = growthUnderTest();
  growth.start();
  for (const size of [1, 2, 5]) {
    expect(growth.isWhole(size)).toBe(false);
    clock.jump(quietMs - 1);
    expect(growth.isWhole(size)).toBe(false);
  }
  clock.jump(1);
  expect(growth.isWhole(5)).toBe(true);
});

test('the time before a turn begins to wait does not count', () => {
  const { clock, growth } = growthUnderTest();
  clock.jump(10 * quietMs);
  growth.start();
  expect(growth.isWhole(1)).toBe(false);
});

test('a clock that is put back keeps it from nothing', () => {
  const { clock, growth } = growthUnderTest();
  growth.start();
  clock.jump(-60_000);
  expect(growth.isWhole(1)).toBe(false);
  clock.jump(quietMs);
  expect(growth.isWhole(1)).toBe(true);
});

test('behind two groups that stopped at one size sixteen are whole at that size, and then it is looked again', () => {
  const { isWholeAtOnce } = growthUnderTest();
  const atOnce = Array.from({ length: 36 }, () => isWholeAtOnce(10));
  const sixteen = Array.from({ length: 16 }, () => true);
  expect(atOnce).toEqual([false, false, ...sixteen, false, ...sixteen, false]);
});

test('fewer than that are waited for, and change what counts as whole', () => {
  const { isWholeAtOnce } = growthUnderTest();
  const sizes = [10, 10, 10, 9, 10, 9, 9, 9, 12];
  expect(sizes.map(isWholeAtOnce)).toEqual([false, false, true, false, false, false, false, true, true]);
});

test('groups that stop at other sizes each time are waited for', () => {
  const { isWholeAtOnce } = growthUnderTest();
  for (let turn = 0; turn < 100; turn += 1) expect(isWholeAtOnce(turn % 2 === 0 ? 7 : 8)).toBe(false);
});

test('a group that went on growing between two that stopped at one size is not passed over', () => {
  const { growth, isWholeAtOnce } = growthUnderTest();
  expect(isWholeAtOnce(10)).toBe(false);
  growth.start();
  expect(growth.isWhole(12)).toBe(false);
  expect(isWholeAtOnce(10)).toBe(false);
  expect(isWholeAtOnce(10)).toBe(false);
  expect(isWholeAtOnce(10)).toBe(true);
});

test('where nothing is waited for every group is whole', () => {
  const growth = new GroupGrowth(new ManualClock(startMs), 0);
  for (let turn = 0; turn < 100; turn += 1) {
    growth.start();
    expect(growth.isWhole(turn % 3)).toBe(true);
  }
});
