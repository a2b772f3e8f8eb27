import { expect, it } from 'vitest';
import { partsIn, partsInText } from '../../../src/domain/json/json-parts.ts';

it.each([
  ['{}', 1],
  ['{"a":1,"b":[1,2,3]}', 5],
  ['[[[[]]]]', 4],
  ['"a, b"', 1],
  ['7', 0],
  ['{"ключ":"значение, и"}', 2],
  [String.raw`"[0\u002c0\u002c0]\n"`, 4],
])('%s takes so many parts to read at most: %i', (text, count) => {
  expect(partsInText(text)).toBe(count);
  expect(partsIn(Buffer.from(text))).toBe(count);
});

it('a long text counts for its length too', () => {
  expect(partsInText(' '.repeat(16 * 1024 + 128))).toBe(2);
  expect(partsIn(Buffer.alloc(1024 * 1024))).toBe((1024 * 1024 - 16 * 1024) / 64);
});
