import { expect, test } from 'vitest';
import { RecentMap } from '../../../src/runtime/collections/recent-map.ts';

test('the oldest entry is dropped when there are too many', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 2, 3]);
});

test('an entry that is set again counts as new, a read one does not', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.get('b');
  map.set('c', 4);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4]);
});

test('a removed entry makes room', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect([map.delete('b'), map.delete('b')]).toEqual([true, false]);
  map.set('c', 3);
  expect([map.get('a'), map.get('c')]).toEqual([1, 3]);
});
