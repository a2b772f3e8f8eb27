import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isoTime, parseRfc3339 } from '../../../src/domain/values/time.ts';

describe('written times', () => {
  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [1795226799123, '2026-11-21T02:06:39.123Z'],
    [-1, '1969-12-31T23:59:59.999Z'],
    [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
  ])('the time %d is written as %s', (ms, text) => {
    expect(isoTime(ms)).toBe(text);
    expect(parseRfc3339(text)).toBe(ms);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, 253_402_300_800_000, -62_167_219_200_001])('%d is refused', (ms) => {
    expect(() => isoTime(ms)).toThrow(RangeError);
  });

  test('times within the same seconds are written like Date writes them, with fractions cut off', () => {
    const seconds = fc.integer({ min: -2, max: 2 });
    const times = fc.array(fc.record({ second: seconds, ms: fc.double({ min: 0, max: 999.99, noNaN: true }) }));
    fc.assert(
      fc.property(times, (all) => {
        for (const { second, ms } of all) {
          const timeMs = second * 1_000 + ms;
          expect(isoTime(timeMs)).toBe(new Date(timeMs).toISOString());
        }
      }),
    );
  });
});

describe('read times', () => {
  test.each([
    ['2026-11-21T02:06:39Z', '2026-11-21T02:06:39.000Z'],
    ['2026-11-21t02:06:39z', '2026-11-21T02:06:39.000Z'],
    ['2026-11-21T02:06:39.1Z', '2026-11-21T02:06:39.100Z'],
    ['2026-11-21T02:06:39.1239999Z', '2026-11-21T02:06:39.123Z'],
    ['1969-12-31T23:59:59.9999Z', '1969-12-31T23:59:59.999Z'],
    ['2026-11-21T02:06:39+05:30', '2026-11-20T20:36:39.000Z'],
    ['2026-11-21T02:06:39-23:59', '2026-11-22T02:05:39.000Z'],
    ['2026-11-21T02:06:39-00:00', '2026-11-21T02:06:39.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
    ['0099-03-01T00:00:00Z', '0099-03-01T00:00:00.000Z'],
    ['1937-01-01T12:00:27.87+00:20', '1937-01-01T11:40:27.870Z'],
    ['1990-12-31T23:59:60Z', '1991-01-01T00:00:00.000Z'],
    ['1990-12-31T15:59:60-08:00', '1991-01-01T00:00:00.000Z'],
    ['2015-07-01T05:29:60.5+05:30', '2015-07-01T00:00:00.500Z'],
  ])('%s is the time %s', (text, iso) => {
    expect(parseRfc3339(text)).toBe(Date.parse(iso));
  });

  const faults = {
    parts: ['', '2026', '2026-11-21', '02:06:39Z', '2026-11-21T02:06Z', '2026-11-21T02:06:39'],
    separators: ['2026-11-21 02:06:39Z', '2026-11-21_02:06:39Z', '2026-11-21T02:06:39.Z', '2026-11-21T02:06:39,5Z'],
    months: ['2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z'],
    days: ['2026-11-00T00:00:00Z', '2026-11-31T00:00:00Z', '2025-02-29T00:00:00Z', '1900-02-29T00:00:00Z'],
    times: ['2026-11-21T24:00:00Z', '2026-11-21T02:60:00Z', '2026-11-21T02:06:61Z'],
    leapSeconds: ['2026-11-21T02:06:60Z', '2026-11-30T23:59:60Z', '1990-12-31T23:59:60+01:00', '9999-12-31T23:59:60Z'],
    offsets: ['2026-11-21T02:06:39+24:00', '2026-11-21T02:06:39+05:60', '2026-11-21T02:06:39+0530'],
    shortOffset: ['2026-11-21T02:06:39+5:30'],
    years: ['+002026-11-21T02:06:39Z', '-0001-11-21T02:06:39Z', '12026-11-21T02:06:39Z', '٢٠٢٦-11-21T02:06:39Z'],
    range: ['0000-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'],
    ends: ['2026-11-21T02:06:39ZZ', ' 2026-11-21T02:06:39Z', '2026-11-21T02:06:39Z\n'],
    otherForms: ['1795226799', 'now', 'Sat, 21 Nov 2026 02:06:39 GMT'],
  };

  test.each(Object.values(faults).flat())('%j is refused', (text) => {
    expect(parseRfc3339(text)).toBeNull();
  });

  test('a written time reads back as itself', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), (ms) => {
        expect(parseRfc3339(isoTime(ms))).toBe(ms);
      }),
    );
  });

  test('no text throws an error', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789-:TZ.+') }), (text) => void parseRfc3339(text)),
    );
  });
});
