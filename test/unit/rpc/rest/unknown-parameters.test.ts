import { describe, expect, it } from 'vitest';
import { parametersOf } from '../../../../src/rpc/rest/query.ts';
import {
  ignoredParametersValue,
  isStrict,
  unknownParameters as unknownAmong,
  unknownParameter,
} from '../../../../src/rpc/rest/unknown-parameters.ts';

const known = new Map([
  ['status', 1],
  ['limit', 1],
]);

const unknownParameters = (query: string) => unknownAmong(known, parametersOf(query));

describe('the unknown parameters of a query', () => {
  it('are named once each, in the order of the query', () => {
    expect(unknownParameters('b=1&status=OPEN&a=2&b=3&%61=4&&limit=1')).toEqual(['b', 'a']);
    expect(unknownParameters('status=OPEN&st%61tus=x&limit')).toEqual([]);
    expect(unknownParameters('')).toEqual([]);
  });

  it('are found in any spelling, also with a broken or empty name', () => {
    expect(unknownParameters('Status=OPEN&__proto__=1&%FF=2&=3&a+b=4')).toEqual([
      'Status',
      '__proto__',
      '%FF',
      '=3',
      'a b',
    ]);
  });

  it('are cut to a bounded length', () => {
    expect(unknownParameters(`${'x'.repeat(9_000)}=1`)).toEqual(['x'.repeat(128)]);
    const cut = unknownParameters(`${'x'.repeat(127)}${encodeURIComponent('\u{1F600}')}=1`);
    expect(cut.map((name) => name.isWellFormed())).toEqual([true]);
  });
});

describe('the value of X-Ignored-Parameters', () => {
  it('holds nothing that ends a header or another name', () => {
    expect(ignoredParametersValue(['a', 'b,c', 'd\r\nset-cookie: x', 'é'])).toBe(
      'a, b%2Cc, d%0D%0Aset-cookie%3A%20x, %C3%A9',
    );
  });

  it('is bounded, and says that there are more', () => {
    const value = ignoredParametersValue(Array.from({ length: 9_000 }, (_, at) => `name${at}`));
    expect(value.length).toBeLessThan(2_100);
    expect(value).toMatch(/^name0, name1, .*, \.\.\.$/);
    expect(ignoredParametersValue(['\u{1F600}'.repeat(64)]).length).toBe(64 * 12);
  });
});

describe('X-Strict', () => {
  it('is 1 or 0, and anything else is refused', () => {
    expect([isStrict('1'), isStrict('0'), isStrict(undefined)]).toEqual([true, false, false]);
    for (const value of ['', 'true', '1, 1', '2'])
      expect(() => isStrict(value)).toThrow(
        expect.objectContaining({ code: 'invalid_argument', details: { header: 'X-Strict', expected: '1 or 0' } }),
      );
  });

  it('refuses a parameter by its name, with the nearest known one', () => {
    expect(unknownParameter('staus', ['status', 'limit'])).toMatchObject({
      code: 'invalid_argument',
      message: 'There is no parameter "staus" here; the nearest one is "status".',
      details: { field: 'staus', expected: 'one of status, limit', nearest: 'status' },
    });
    expect(unknownParameter('x', []).details).toEqual({ field: 'x', expected: 'no parameters' });
  });
});
