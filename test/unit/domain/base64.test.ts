import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBase64 } from '../../../src/domain/keys/base64.ts';

describe('strict base64', () => {
  test('encoded bytes decode to themselves at their own length only', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(decodeBase64(text, bytes.length)).toEqual(Buffer.from(bytes));
        expect(decodeBase64(text, bytes.length + 1)).toBeNull();
        if (bytes.length > 0) expect(decodeBase64(text, bytes.length - 1)).toBeNull();
      }),
    );
  });

  test('each value has exactly one accepted encoding', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'AB+/-_=Zz9 \n'), minLength: 4, maxLength: 4 }), (text) => {
        for (const length of [1, 2, 3]) {
          const bytes = decodeBase64(text, length);
          if (bytes !== null) expect(Buffer.from(bytes).toString('base64')).toBe(text);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['AB==', 1],
    ['AAB=', 2],
    ['AA', 1],
    ['AA=', 1],
    ['AA===', 1],
    ['-_-_', 3],
    ['AA==\n', 1],
    [' AA=', 1],
    ['A===', 1],
    ['AAA', 2],
    ['AA=A', 2],
    ['====', 0],
    ['=', 0],
  ])('%j is refused', (text, lengthBytes) => {
    expect(decodeBase64(text, lengthBytes)).toBeNull();
  });
});
