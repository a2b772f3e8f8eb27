import { expect, it } from 'vitest';
import { partsIn } from '../../../src/domain/json/json-parts.ts';

it.each([
  ['{}', 1],
  ['{"a":1,"b":[1,2,3]}', 5],
  ['[[[[]]]]', 4],
  ['"a, b"', 1],
  ['7', 0],
  ['{"ключ":"значение, и"}', 2],
  [String.raw`"[0\u002c0\u002c0]\n"`, 4],
])('%s takes so many parts to read at most: %i', (text, count) => {
  expect(partsIn(Buffer.from(text))).toBe(count);
});

it.each([
  ['[1e3,1E3,-1.50,12.5]', 4],
  ['{"a":1e3,"b" : -0.5,"c":\n1.0}', 3],
  ['[123,-4,0]', 0],
  ['{"id":"0199e3ab-1e3f-7000-8000-00000e120000","at":"2026-11-27T17:04:21Z"}', 0],
  // Within a text it is taken for a number.
  ['{"note":"1.5, 1e3","at":"17:04:21.123"}', 2],
  ['{"t":"2026-11-27T17:04:21.123Z","v":1}', 1],
])('%s has so many numbers that are no plain integers, and each counts as five parts: %i', (text, numbers) => {
  const marks = text.replace(/[^,[{]/g, '').length;
  expect(partsIn(Buffer.from(text))).toBe(marks + 4 * numbers);
});

it('a long text counts for its length too', () => {
  expect(partsIn(Buffer.from(' '.repeat(16 * 1024 + 128)))).toBe(2);
  expect(partsIn(Buffer.alloc(1024 * 1024))).toBe((1024 * 1024 - 16 * 1024) / 64);
});
