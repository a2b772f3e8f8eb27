import { expect, it } from 'vitest';
import { valuesIn, valuesInText } from '../../../src/domain/json/json-values.ts';

it.each([
  ['{}', 1],
  ['{"a":1,"b":[1,2,3]}', 5],
  ['[[[[]]]]', 4],
  ['"a, b"', 1],
  ['7', 0],
  ['{"ключ":"значение, и"}', 2],
])('%s has at most so many values: %i', (text, count) => {
  expect(valuesInText(text)).toBe(count);
  expect(valuesIn(Buffer.from(text))).toBe(count);
});
