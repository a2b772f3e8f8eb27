import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenEvents } from '../../src/service/ledgers/open-events.ts';

const timelyMs = 1_000;

/** How many events of no length it takes at once. */
function room(open: OpenEvents): number {
  let taken = 0;
  for (; open.mayTake; taken += 1) open.taken(0);
  for (let n = 0; n < taken; n += 1) open.handedOut(0);
  return taken;
}

function settle(open: OpenEvents, times: number, tookMs: number): void {
  for (let n = 0; n < times; n += 1) open.settled(tookMs);
}

test('a stream begins with 64 events open', () => {
  expect(room(new OpenEvents())).toBe(64);
});

test('each timely outcome lets it have one more, up to 512', () => {
  const open = new OpenEvents();
  settle(open, 100, timelyMs);
  expect(room(open)).toBe(164);
  settle(open, 1_000, 0);
  expect(room(open)).toBe(512);
});

test('each late one takes one away, down to 16, and timely ones give them back', () => {
  const open = new OpenEvents();
  settle(open, 20, timelyMs + 1);
  expect(room(open)).toBe(44);
  settle(open, 1_000, 9_000);
  expect(room(open)).toBe(16);
  settle(open, 10, 20);
  expect(room(open)).toBe(26);
});

test('8 Mi characters are enough, however few events they are', () => {
  const open = new OpenEvents();
  open.taken(8 * 1024 * 1024 - 1);
  expect(open.mayTake).toBe(true);
  open.taken(1);
  expect(open.mayTake).toBe(false);
  open.handedOut(1);
  expect(open.mayTake).toBe(true);
});

test('whatever was late, what was handed out makes room again: no stream stands still for good', () => {
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
      expect(room(open)).toBeGreaterThanOrEqual(16);
    }),
  );
});
