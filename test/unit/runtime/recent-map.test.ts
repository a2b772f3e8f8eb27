import { expect, test } from 'vitest';
import { RecentMap } from '../../../src/runtime/collections/recent-map.ts';

test('what was set longest ago is forgotten once there are more than fit', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, 2, 3]);
});

test('what is set again counts as set then, and what is only read does not', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.get('b');
  map.set('c', 4);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4]);
});

test('what was taken out makes room', () => {
  const map = new RecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect([map.delete('b'), map.delete('b')]).toEqual([true, false]);
  map.set('c', 3);
  expect([map.get('a'), map.get('c')]).toEqual([1, 3]);
});
