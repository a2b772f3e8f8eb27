import { expect, test } from 'vitest';
import { KeyedMutex } from '../../../src/store/keyed-mutex.ts';
import { settled } from '../../support/clock.ts';

test('a key is free again if all that waited for it have left when its turn passes on', async () => {
  const mutex = new KeyedMutex({ max: 1, bound: 'X' });
  const ends = Promise.withResolvers<void>();
  const ending = new AbortController();
  const first = mutex.take('a', 'write', () => ends.promise);
  const waiting = mutex.take('a', 'write', async () => 'begun', { signal: ending.signal });
  ends.resolve();
  await first;
  // The next one begins in a later turn of the event loop.
  ending.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
  await settled();
  expect(mutex.hasWaiting('a')).toBe(false);
  expect(await mutex.take('a', 'write', async () => 'begun')).toBe('begun');
});

test('the end of a call does not stop an operation that has begun', async () => {
  const mutex = new KeyedMutex({ max: 1, bound: 'X' });
  const ends = Promise.withResolvers<string>();
  const ending = new AbortController();
  const before = mutex.take('a', 'write', async () => {});
  const running = mutex.take('a', 'write', () => ends.promise, { signal: ending.signal });
  await before;
  await settled();
  const waiting = mutex.take('a', 'write', async () => 'begun');
  ending.abort();
  ends.resolve('done');
  expect(await Promise.all([running, waiting])).toEqual(['done', 'begun']);
});
