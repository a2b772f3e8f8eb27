import { expect, test } from 'vitest';
import { CountedRecentMap } from '../../../src/runtime/limits/counted-recent-map.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';

function rig(maxBytes: number) {
  const memory = new MemoryBudget(1_000_000);
  return { map: new CountedRecentMap<string, number>(memory, maxBytes), bytes: () => memory.heldBytes('queue') };
}

test('the oldest entries leave when all together take too many bytes, and the budget counts those that stay', () => {
  const { map, bytes } = rig(640);
  map.set('a', 1, 320);
  map.set('b', 2, 128);
  expect(bytes()).toBe(448);
  map.set('c', 3, 512);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 2, 3]);
  expect(bytes()).toBe(640);
});

test('an entry that is set again counts once, with its new size', () => {
  const { map, bytes } = rig(640);
  map.set('a', 1, 320);
  map.set('a', 2, 128);
  expect([map.get('a'), bytes()]).toEqual([2, 128]);
});

test('an entry that alone takes too much does not stay', () => {
  const { map, bytes } = rig(64);
  map.set('a', 1, 65);
  expect([map.get('a'), bytes()]).toEqual([undefined, 0]);
});

test('a removed entry is not counted any more', () => {
  const { map, bytes } = rig(640);
  map.set('a', 1, 320);
  map.delete('a');
  map.delete('a');
  expect([map.get('a'), bytes()]).toEqual([undefined, 0]);
});
