import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LedgerError } from '../../../src/domain/errors.ts';
import { parseJson } from '../../../src/domain/json/json.ts';

/** The value of a decimal number as mantissa × 10^exponent, made here a second time, by arithmetic. */
function decimal(token: string): { mantissa: bigint; exponent: number } {
  const [mantissa = '', exponent = '0'] = token.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { mantissa: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function isSameDecimal(left: string, right: string): boolean {
  const [a, b] = [decimal(left), decimal(right)];
  const low = Math.min(a.exponent, b.exponent);
  return a.mantissa * 10n ** BigInt(a.exponent - low) === b.mantissa * 10n ** BigInt(b.exponent - low);
}

function isInteger(token: string): boolean {
  const { mantissa, exponent } = decimal(token);
  return exponent >= 0 || mantissa % 10n ** BigInt(-exponent) === 0n;
}

function significantDigits(token: string): number {
  return decimal(token).mantissa.toString().replace('-', '').replace(/0+$/, '').length;
}

describe('numbers that are kept', () => {
  test.each([
    ['0', '0'],
    ['-0', '0'],
    ['-0.0', '0'],
    ['0e5', '0'],
    ['-0E-5', '0'],
    ['0.000e999999999999', '0'],
    ['1.10', '1.1'],
    ['1E2', '100'],
    ['1e+2', '100'],
    ['100e-2', '1'],
    ['333333333.33333329', '333333333.3333333'],
    ['9007199254740991', '9007199254740991'],
    ['-9007199254740991', '-9007199254740991'],
    ['9007199254740992', '9007199254740992'],
    ['9007199254740994', '9007199254740994'],
    ['1e21', '1e+21'],
    ['1E30', '1e+30'],
    ['1000000000000000000000', '1e+21'],
    ['123456789012345680', '123456789012345680'],
    ['0.1', '0.1'],
    ['4.50', '4.5'],
    ['2e-3', '0.002'],
    ['0.000000000000000000000000001', '1e-27'],
    ['1e-7', '1e-7'],
    ['0.000001', '0.000001'],
    ['5e-324', '5e-324'],
    ['1.7976931348623157e308', '1.7976931348623157e+308'],
    ['0.30000000000000004', '0.30000000000000004'],
    ['0.10000000000000000000000', '0.1'],
    ['12345678901234.567', '12345678901234.566'],
    ['-1.5e-7', '-1.5e-7'],
    ['1.0', '1'],
  ])('%s becomes %s', (token, canonical) => {
    const node = parseJson(token);
    expect(node).toEqual({ kind: 'number', canonical, value: Number(token) + 0 });
    expect(parseJson(canonical).canonical).toBe(canonical);
  });

  test('-0 becomes the value 0 with a positive sign', () => {
    expect(parseJson('-0')).toHaveProperty('value', 0);
    expect(Object.is((parseJson('-0.0') as { value: number }).value, 0)).toBe(true);
  });
});

describe('numbers that are refused', () => {
  test.each([
    '9007199254740993',
    '-9007199254740993',
    '9007199254740993.0',
    '900719925474099.3e1',
    '1e400',
    '-1e400',
    '1e99999999999999999999',
    '1e-400',
    '-1e-400',
    '0.1e-99999999999999999999',
    '2e-324',
    '0.1000000000000000000001',
    '123456789012345678.5',
    '12345678901234567890',
    '1.00000000000000000001',
    '333333333.333333291234',
    '18446744073709551615',
    '1.7976931348623159e308',
    '100000000000000000000001',
  ])('%s is unsafe_number', (token) => {
    expect(() => parseJson(`{"a":[${token}]}`)).toThrow(
      expect.objectContaining({ code: 'unsafe_number', details: { number: token, offset: 6 } }),
    );
  });

  test.each([
    ['1e400', 'too large'],
    ['-1e400', 'too large'],
    ['1e-400', 'too close to 0'],
    ['9007199254740993', 'would become 9007199254740992'],
  ])('the message for %s says why', (token, why) => {
    expect(() => parseJson(token)).toThrow(expect.objectContaining({ message: expect.stringContaining(why) }));
  });

  test('a number of a million digits is refused within a second and not repeated in the error', () => {
    const started = performance.now();
    for (const token of ['9'.repeat(1_000_000), `0.${'1'.repeat(1_000_000)}`, `1.${'0'.repeat(1_000_000)}1`]) {
      try {
        parseJson(token);
        expect.unreachable();
      } catch (error) {
        expect((error as LedgerError).code).toBe('unsafe_number');
        expect(JSON.stringify(error).length + (error as LedgerError).message.length).toBeLessThan(1_000);
      }
    }
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  test('a million zeros around an exact number change nothing', () => {
    expect(parseJson(`1.5${'0'.repeat(1_000_000)}`).canonical).toBe('1.5');
    expect(parseJson(`0.${'0'.repeat(1_000_000)}1e1000001`).canonical).toBe('1');
  });
});

test('a number is refused or keeps its decimal value, except fractions of at most 17 digits', () => {
  const digits = fc.stringMatching(/^(0|[1-9][0-9]{0,22})$/);
  const token = fc
    .tuple(
      fc.constantFrom('', '-'),
      digits,
      fc.option(fc.stringMatching(/^[0-9]{1,22}$/)),
      fc.option(fc.integer({ min: -400, max: 400 })),
    )
    .map(
      ([sign, whole, fraction, exponent]) =>
        sign + whole + (fraction === null ? '' : `.${fraction}`) + (exponent === null ? '' : `e${exponent}`),
    );
  fc.assert(
    fc.property(token, (text) => {
      const value = Number(text);
      const isZero = decimal(text).mantissa === 0n;
      const isShortFraction = !isInteger(text) && significantDigits(text) <= 17;
      const isKept =
        Number.isFinite(value) && (value !== 0 || isZero) && (isShortFraction || isSameDecimal(text, String(value)));
      if (isKept) expect(parseJson(text)).toEqual({ kind: 'number', canonical: String(value), value: value + 0 });
      else expect(() => parseJson(text)).toThrow(expect.objectContaining({ code: 'unsafe_number' }));
    }),
    { numRuns: 3_000 },
  );
});
