import { expect, test } from 'vitest';
import { WeightedMap } from '../../../src/runtime/collections/weighted-map.ts';

test('the entries that were set longest ago leave until the others are light enough', () => {
  const map = new WeightedMap<string, number>(10);
  map.set('a', 1, 3);
  map.set('b', 2, 3);
  map.set('c', 3, 4);
  map.set('d', 4, 5);
  expect(['a', 'b', 'c', 'd'].map((key) => map.get(key))).toEqual([undefined, undefined, 3, 4]);
});

test('an entry that is set again counts as new, with its new weight alone', () => {
  const map = new WeightedMap<string, number>(10);
  map.set('a', 1, 9);
  map.set('b', 2, 1);
  map.set('a', 3, 2);
  map.set('c', 4, 7);
  expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([3, 2, 4]);
  map.set('d', 5, 1);
  expect(['a', 'b', 'c', 'd'].map((key) => map.get(key))).toEqual([3, undefined, 4, 5]);
});

test('an entry that is too heavy by itself is not kept', () => {
  const map = new WeightedMap<string, number>(10);
  map.set('a', 1, 11);
  expect(map.get('a')).toBeUndefined();
  map.set('b', 2, 10);
  expect(map.get('b')).toBe(2);
});
