import { describe, expect, test } from 'vitest';
import { sha256Buffer } from '../../../src/domain/keys/hash-buffer.ts';
import { forEachConcurrently } from '../../../src/maintenance/for-each-concurrently.ts';
import { FingerprintSet } from '../../../src/maintenance/scrub/fingerprint-set.ts';

describe('a set of fingerprints', () => {
  test('contains all added items after every growth, and nothing else', () => {
    const set = new FingerprintSet();
    for (let n = 0; n < 20_000; n += 1) set.add(`line ${n}`);
    expect(set.size).toBe(20_000);
    for (let n = 0; n < 20_000; n += 1) if (!set.has(`line ${n}`)) throw new Error(`line ${n} is not there`);
    for (let n = 20_000; n < 40_000; n += 1) if (set.has(`line ${n}`)) throw new Error(`line ${n} is there`);
  });

  test('is not changed by adding an item again', () => {
    const set = new FingerprintSet();
    for (const text of ['a', 'b', 'a']) set.add(text);
    expect(set.size).toBe(2);
  });

  test('counts its texts that another set does not have', () => {
    const [set, other] = [new FingerprintSet(), new FingerprintSet()];
    for (let n = 0; n < 3_000; n += 1) set.add(`line ${n}`);
    for (let n = 2_000; n < 4_000; n += 1) other.add(`line ${n}`);
    expect(set.countMissingIn(other)).toBe(2_000);
    expect(set.countMissingIn(new FingerprintSet())).toBe(3_000);
    expect(set.countMissingIn(set)).toBe(0);
  });

  test('does not have a text whose hash was made to begin like that of another text', () => {
    const [text, forged] = ['line 185310411997976', 'line 25841946682222'];
    expect(sha256Buffer(text).subarray(0, 6)).toEqual(sha256Buffer(forged).subarray(0, 6));
    const [set, other] = [new FingerprintSet(), new FingerprintSet()];
    set.add(text);
    other.add(forged);
    expect(set.has(text)).toBe(true);
    expect(set.has(forged)).toBe(false);
    expect(set.countMissingIn(other)).toBe(1);
  });

  test('an empty one has nothing', () => {
    expect(new FingerprintSet().has('')).toBe(false);
  });
});

describe('a bounded number of concurrent items', () => {
  test('runs all items, never more than the limit at a time', async () => {
    let [running, most] = [0, 0];
    const done: number[] = [];
    await forEachConcurrently([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      done.push(item);
    });
    expect({ most, done: done.toSorted() }).toEqual({ most: 3, done: [1, 2, 3, 4, 5, 6, 7] });
  });

  test('throws a failure once the running items have ended, and starts none', async () => {
    const begun: number[] = [];
    const ended: number[] = [];
    const work = forEachConcurrently([1, 2, 3, 4, 5, 6], 2, async (item) => {
      begun.push(item);
      await new Promise((resolve) => setImmediate(resolve));
      if (item === 1) throw new Error('one failed');
      ended.push(item);
    });
    await expect(work).rejects.toThrow('one failed');
    expect(begun.length).toBeLessThan(6);
    expect(ended.length).toBe(begun.length - 1);
  });

  test('throws a failure of the last item', async () => {
    const work = forEachConcurrently([1], 4, async () => {
      throw new Error('the last one');
    });
    await expect(work).rejects.toThrow('the last one');
  });
});
