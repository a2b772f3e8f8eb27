import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenEvents } from '../../../../src/service/masters/open-events.ts';

const timelyMs = 1_000;

/** How many events of no length it takes at once. */
function room(open: OpenEvents): number {
  let taken = 0;
  for (; open.mayTake; taken += 1) open.taken(0);
  for (let n = 0; n < taken; n += 1) open.handedOut(0);
  return taken;
}

/** As many outcomes as may be open, so many times. */
function settleAll(open: OpenEvents, times: number, tookMs: number): void {
  for (let n = 0; n < times; n += 1) for (let left = room(open); left > 0; left -= 1) open.settled(tookMs);
}

test('a stream begins with 64 open events', () => {
  expect(room(new OpenEvents())).toBe(64);
});

test('the limit grows by 16, up to 512, once as many outcomes as it allows were timely', () => {
  const open = new OpenEvents();
  settleAll(open, 1, timelyMs);
  expect(room(open)).toBeGreaterThan(75);
  expect(room(open)).toBeLessThanOrEqual(80);
  settleAll(open, 40, 0);
  expect(room(open)).toBe(512);
});

test('the limit is halved, down to 64, once all outcomes were late, and grows again', () => {
  const open = new OpenEvents();
  settleAll(open, 40, 0);
  settleAll(open, 1, timelyMs + 1);
  expect(room(open)).toBe(256);
  settleAll(open, 10, 9_000);
  expect(room(open)).toBe(64);
  settleAll(open, 1, 20);
  expect(room(open)).toBeGreaterThan(75);
});

test('two streams of a node that is sometimes late converge to equal limits', () => {
  const [rich, poor] = [new OpenEvents(), new OpenEvents()];
  settleAll(rich, 40, 0);
  for (let round = 0; round < 20; round += 1)
    for (const open of [rich, poor]) settleAll(open, 1, round % 4 === 0 ? 5_000 : 10);
  expect(room(rich) / room(poor)).toBeLessThan(1.1);
});

test('a stream takes no more events beyond 8 Mi characters', () => {
  const open = new OpenEvents();
  open.taken(8 * 1024 * 1024 - 1);
  expect(open.mayTake).toBe(true);
  open.taken(1);
  expect(open.mayTake).toBe(false);
  open.handedOut(1);
  expect(open.mayTake).toBe(true);
});

test('a stream whose outcomes were all handed out may always take 64 events again', () => {
  const step = fc.record({ tookMs: fc.nat(20_000), length: fc.nat(300_000) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2_000 }), (steps) => {
      const open = new OpenEvents();
      const held: number[] = [];
      for (const { tookMs, length } of steps) {
        if (open.mayTake) {
          open.taken(length);
          held.push(length);
        } else {
          open.settled(tookMs);
          open.handedOut(held.shift() ?? 0);
        }
      }
      for (const length of held) open.handedOut(length);
      expect(open.count).toBe(0);
      expect(room(open)).toBeGreaterThanOrEqual(64);
    }),
  );
});
