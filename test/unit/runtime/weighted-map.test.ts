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

test('an entry that is too heavy by itself is not kept, replaces the one of its key, and makes no other leave', () => {
  const map = new WeightedMap<string, number>(10);
  map.set('a', 1, 4);
  map.set('b', 2, 6);
  map.set('a', 3, 11);
  expect(['a', 'b'].map((key) => map.get(key))).toEqual([undefined, 2]);
  map.set('c', 4, 4);
  expect(['b', 'c'].map((key) => map.get(key))).toEqual([2, 4]);
});
