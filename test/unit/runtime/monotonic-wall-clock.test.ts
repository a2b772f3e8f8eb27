import { expect, test } from 'vitest';
import { MonotonicWallClock } from '../../../src/runtime/clock/monotonic-wall-clock.ts';
import { ManualClock } from '../../support/clock.ts';

const startMs = 1_000_000;

/** Time passes by `pass`; `wall.jump` sets the machine's clock alone. */
function clocks() {
  const wall = new ManualClock(startMs);
  let monotonicMs = 7.25;
  const clock = new MonotonicWallClock(wall, () => monotonicMs);
  const pass = async (ms: number) => {
    monotonicMs += ms;
    await wall.advance(ms);
  };
  return { wall, clock, pass };
}

test('a clock that goes forward is followed, also ahead', async () => {
  const { wall, clock, pass } = clocks();
  for (const ms of [0, 1, 999, 60_000]) {
    await pass(ms);
    expect(clock.now()).toBe(wall.now());
  }
  wall.jump(3_600_000);
  expect(clock.now()).toBe(wall.now());
});

test('after a step back the clock runs at half speed in whole milliseconds and never goes back', async () => {
  const { wall, clock, pass } = clocks();
  wall.jump(-20_000);
  expect(clock.now()).toBe(startMs);
  let before = clock.now();
  for (let at = 0; at < 1_000; at++) {
    await pass(11);
    const now = clock.now();
    expect(now).toBeGreaterThan(before);
    expect(Number.isInteger(now)).toBe(true);
    before = now;
  }
  expect(before).toBe(startMs + 5_500);
  await pass(29_000);
  expect(clock.now()).toBe(wall.now());
  expect(wall.now()).toBe(startMs + 20_000);
});

test('after many steps back the clock is not ahead of its latest time and the time since', async () => {
  const { wall, clock, pass } = clocks();
  for (let at = 0; at < 10; at++) {
    wall.jump(-1_000);
    await pass(100);
    clock.now();
  }
  expect(clock.now()).toBe(startMs + 500);
});

test('a clock does not begin before its given time, and reports how far ahead it is', async () => {
  const { wall, clock, pass } = clocks();
  expect(clock.notBefore(startMs - 5_000)).toBe(0);
  expect(clock.now()).toBe(startMs);
  expect(clock.notBefore(startMs + 5_000)).toBe(5_000);
  expect(clock.now()).toBe(startMs + 5_000);
  await pass(10_000);
  expect(clock.now()).toBe(wall.now());
});

test('a timer runs after its time, whatever the clock is set to', async () => {
  const { wall, clock, pass } = clocks();
  wall.jump(-3_600_000);
  let runs = 0;
  clock.after(1_000, () => {
    runs += 1;
  });
  await pass(999);
  expect(runs).toBe(0);
  await pass(1);
  expect(runs).toBe(1);
});
