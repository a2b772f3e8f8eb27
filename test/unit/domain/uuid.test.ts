import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { uuidBytes, uuidFromBytes, uuidV5, uuidV7, uuidV7Time } from '../../../src/domain/values/uuid.ts';
import { isUuid } from '../../../src/domain/values/uuid-form.ts';

const DNS = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';

describe('UUIDv7', () => {
  test('matches the example of RFC 9562, appendix A.6', () => {
    const random = Buffer.from('0cc3' + '18c4dc0c0c07398f', 'hex');
    expect(uuidV7(0x017f22e279b0, random)).toBe('017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
    expect(uuidV7Time('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')).toBe(0x017f22e279b0);
  });

  test('carries its time, version and variant, whatever the random bytes are', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 48 - 1 }),
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (ms, random) => {
          const id = uuidV7(ms, random);
          expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
          expect(uuidV7Time(id)).toBe(ms);
        },
      ),
    );
  });

  test('sorts later for later times', () => {
    const random = new Uint8Array(10);
    expect(
      uuidV7(
        999,
        random.map(() => 255),
      ) < uuidV7(1_000, random),
    ).toBe(true);
  });

  test('leaves the random bytes unchanged', () => {
    const random = new Uint8Array(10).fill(255);
    uuidV7(1, random);
    expect([...random]).toEqual(Array(10).fill(255));
  });

  test.each([-1, 2 ** 48, 0.5, Number.NaN])('refuses the time %d', (ms) => {
    expect(() => uuidV7(ms, new Uint8Array(10))).toThrow(RangeError);
  });

  test('refuses any number of random bytes but ten', () => {
    expect(() => uuidV7(0, new Uint8Array(9))).toThrow(RangeError);
    expect(() => uuidV7(0, new Uint8Array(16))).toThrow(RangeError);
  });

  test.each([DNS, '', '017F22E2-79B0-7CC3-98C4-DC0C0C07398F', '017f22e2-79b0-7cc3-c8c4-dc0c0c07398f'])(
    'has no time in %j',
    (id) => {
      expect(uuidV7Time(id)).toBeNull();
    },
  );
});

describe('UUIDv5', () => {
  test('matches the example of RFC 9562, appendix A.4', () => {
    expect(uuidV5(DNS, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
  });

  test('is made of UTF-8 names, and equal pairs give equal ids', () => {
    expect(uuidV5(DNS, 'é')).toBe(uuidV5(DNS, '\u00e9'));
    expect(uuidV5(DNS, 'e\u0301')).not.toBe(uuidV5(DNS, '\u00e9'));
    expect(uuidV5(uuidV5(DNS, 'a'), 'b')).not.toBe(uuidV5(uuidV5(DNS, 'b'), 'a'));
  });

  test('refuses a namespace that is not a UUID', () => {
    expect(() => uuidV5('dns', 'x')).toThrow(RangeError);
  });
});

describe('the form of a UUID', () => {
  test('maps text to bytes one to one', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const id = uuidFromBytes(bytes);
        expect(isUuid(id)).toBe(true);
        expect(uuidBytes(id)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  test('is read from the start of a view on a larger buffer', () => {
    expect(uuidFromBytes(new Uint8Array(20).fill(1, 4).subarray(4))).toBe('01010101-0101-0101-0101-010101010101');
    expect(() => uuidFromBytes(new Uint8Array(15))).toThrow(RangeError);
  });

  test.each([
    '',
    DNS.toUpperCase(),
    DNS.replace('b', 'B'),
    DNS.replaceAll('-', ''),
    `{${DNS}}`,
    `urn:uuid:${DNS}`,
    `${DNS} `,
    `${DNS}\n`,
    ` ${DNS}`,
    DNS.slice(1),
    `${DNS}0`,
    DNS.replace('6', 'g'),
    DNS.replace('6', '٦'),
    DNS.replace('-', '–'),
    '6ba7b8109-dad-11d1-80b4-00c04fd430c8',
  ])('excludes %j', (text) => {
    expect(isUuid(text)).toBe(false);
    expect(() => uuidBytes(text)).toThrow(RangeError);
  });
});
