import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ApiKeyParts,
  apiKeyHash,
  apiKeyPrefix,
  formatApiKey,
  parseApiKey,
} from '../../../src/domain/keys/api-key.ts';

const SANDBOX = { environment: 'sandbox', region: null } as const;
const INDIA = { environment: 'production', region: 'in' } as const;
const EUROPE = { environment: 'production', region: 'eu' } as const;
const key = formatApiKey({ ...SANDBOX, random: new Uint8Array(32).fill(7) });

describe('API keys', () => {
  test.each([
    [SANDBOX, /^svc_sk_test_[0-9A-Za-z]{49}$/],
    [INDIA, /^svc_sk_live_in_[0-9A-Za-z]{49}$/],
    [EUROPE, /^svc_sk_live_eu_[0-9A-Za-z]{49}$/],
  ])(
    'a key of %o has its prefix and parses to its parts, whatever the random bytes are',
    (parts: ApiKeyParts, form) => {
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (random) => {
          const text = formatApiKey({ ...parts, random });
          expect(text).toMatch(form);
          expect(parseApiKey(text)).toEqual(parts);
        }),
      );
    },
  );

  test('all 256 random bits reach the key: zeros, ones and neighbours give different keys of one length', () => {
    const zeros = new Uint8Array(32);
    const ones = new Uint8Array(32).fill(255);
    const last = new Uint8Array(32).with(31, 1);
    const keys = [zeros, ones, last, zeros.with(0, 1)].map((random) => formatApiKey({ ...SANDBOX, random }));
    expect(new Set(keys).size).toBe(4);
    expect(new Set(keys.map((text) => text.length)).size).toBe(1);
    expect(keys[0]).toMatch(/^svc_sk_test_0{43}/);
  });

  test('the stored form is the SHA-256 of the key, and the shown prefix is its first characters', () => {
    expect(apiKeyHash(key)).toBe(createHash('sha256').update(key).digest('hex'));
    expect(apiKeyPrefix(key)).toBe(key.slice(0, 'svc_sk_test_'.length + 6));
    expect(apiKeyPrefix(formatApiKey({ ...EUROPE, random: new Uint8Array(32) }))).toBe('svc_sk_live_eu_000000');
  });

  test('a key with one changed character does not parse', () => {
    for (let at = 0; at < key.length; at += 1) {
      for (const other of 'aZ0_') {
        if (key[at] === other) continue;
        expect(parseApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBeNull();
      }
    }
  });

  test('a key whose environment or region is exchanged does not parse', () => {
    const secret = key.slice('svc_sk_test_'.length);
    expect(parseApiKey(`svc_sk_live_in_${secret}`)).toBeNull();
    const live = formatApiKey({ ...INDIA, random: new Uint8Array(32).fill(7) });
    expect(parseApiKey(live.replace('_in_', '_eu_'))).toBeNull();
    expect(parseApiKey(live.replace('_in_', '_us_'))).toBeNull();
  });

  test.each([
    '',
    'svc_sk_test_',
    key.slice(0, -1),
    `${key}0`,
    ` ${key}`,
    `${key}\n`,
    key.toUpperCase(),
    key.replace('svc', 'SVC'),
    `Bearer ${key}`,
    key.repeat(2),
  ])('%j does not parse as a key', (text) => {
    expect(parseApiKey(text)).toBeNull();
  });

  test('a key needs 32 random bytes and a region that fits its environment', () => {
    expect(() => formatApiKey({ ...SANDBOX, random: new Uint8Array(31) })).toThrow(RangeError);
    expect(() => formatApiKey({ environment: 'sandbox', region: 'in', random: new Uint8Array(32) })).toThrow(TypeError);
    expect(() => formatApiKey({ environment: 'production', region: null, random: new Uint8Array(32) })).toThrow(
      TypeError,
    );
  });
});
