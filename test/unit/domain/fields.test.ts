import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import * as fields from '../../../src/domain/values/fields.ts';

const ID = '0193a000-0000-7000-8000-00000000000a';

type Check = (field: string, value: unknown) => unknown;

/** Every check with values that it lets pass unchanged and values that it refuses. */
const rules: { readonly [name: string]: { check: Check; good: readonly unknown[]; bad: readonly unknown[] } } = {
  'event types': {
    check: fields.checkEventType,
    good: ['A', 'SHIPMENT_DISPATCHED', 'a.b:c-d_9', 'GENESIS', 'PING', 'x'.repeat(128)],
    bad: ['', '9A', '_A', 'A B', 'A\0B', 'A\n', 'Ä', 'x'.repeat(129), 'A/B', ' A'],
  },
  'event types of callers': {
    check: fields.checkCallerEventType,
    good: ['A', 'PINGS', 'ping', 'genesis', 'ENTITY_REQUEST', 'SHIPMENT_DISPATCHED'],
    bad: ['', 'A\0', 'GENESIS\0'],
  },
  names: {
    check: fields.checkName,
    good: [
      'x',
      'PO-2026-0001',
      'Großhandel Ωmega 株式会社',
      'x'.repeat(256),
      '\u{1f600}'.repeat(256),
      ' ',
      '<script>',
      'a\u0301',
    ],
    bad: [
      '',
      'x'.repeat(257),
      '\u{1f600}'.repeat(257),
      'a\0',
      'a\n',
      'a\tb',
      '\u007f',
      '\u0085',
      '\ud800',
      'x'.repeat(1_000_000),
    ],
  },
  labels: {
    check: fields.checkLabel,
    good: ['ORDER', 'Z', 'Quality audit-2_b', 'x'.repeat(64)],
    bad: ['', '1A', ' A', '-A', 'A.B', 'A\n', 'A\t', 'x'.repeat(65), 'Ä', 'A\u00a0B'],
  },
  countries: {
    check: fields.checkCountry,
    good: ['IN', 'DE', 'ZZ'],
    bad: ['', 'in', 'IND', 'I', 'I1', ' IN', 'IN\n', 'ＩＮ'],
  },
  'e-mail addresses': {
    check: fields.checkEmail,
    good: [
      'a@b.c',
      'dev@example.com',
      "o'hara+x/y=z@sub.example.co.in",
      'δοκιμή@παράδειγμα.δοκιμή',
      'ops@localhost',
      `${'x'.repeat(64)}@b.c`,
    ],
    bad: [
      '',
      'a',
      '@',
      'a@',
      '@b',
      'a@b@c',
      'a b@c.d',
      'a@b c',
      'a@b..c',
      'a@.b',
      'a@b.',
      'a@-b.c',
      'a@b-.c',
      'a@b_c',
      'a@b.c\n',
      'a\0@b.c',
      '<a@b.c>',
      'a@[127.0.0.1]',
      `${'x'.repeat(65)}@b.c`,
      `a@${'b.'.repeat(130)}c`,
      'a@b.c,d@e.f',
      `a@${'b'.repeat(100_000)}`,
    ],
  },
  URLs: {
    check: fields.checkUrl,
    good: [
      'https://example.com/hook',
      'http://127.0.0.1:8080/?a=b#c',
      'HTTPS://Example.com',
      'https://[2001:db8::1]/x',
      'https://x.y/@me',
      `https://x.y/${'a'.repeat(2_036)}`,
    ],
    bad: [
      '',
      'example.com',
      '/hook',
      'ftp://x.y',
      'javascript:alert(1)',
      'file:///etc/passwd',
      'http:x.y',
      'http:/x.y',
      'http://',
      'https:///x',
      'https://a:b@x.y',
      'https://a@x.y',
      'https://@x.y',
      'https://x.y\\@z',
      'https://x.y/a b',
      'https://x.y/\n',
      ' https://x.y',
      'ht\ntps://x.y',
      'https://x.y:99999',
      'https://[::1',
      'https://x.y%00',
      'https://?q',
      `https://x.y/${'a'.repeat(2_037)}`,
    ],
  },
  UUIDs: { check: fields.checkUuid, good: [ID], bad: ['', ID.toUpperCase(), `${ID} `, ID.slice(1), `svc:actor:${ID}`] },
  hashes: {
    check: fields.checkHash,
    good: ['0f'.repeat(32)],
    bad: ['', '0F'.repeat(32), '0f'.repeat(31), `${'0f'.repeat(32)}\n`, 'g0'.repeat(32)],
  },
  limits: {
    check: fields.checkLimit,
    good: [1, 20, 1_000],
    bad: [0, -1, 1_001, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '20', 20n],
  },
  offsets: { check: fields.checkOffset, good: [0, 100_000], bad: [-1, 100_001, 0.5, '0'] },
};

describe.each(Object.entries(rules))('%s', (_, { check, good, bad }) => {
  test.each(good.map((value) => [value]))('%j passes unchanged', (value) => {
    expect(check('f', value)).toBe(value);
  });

  test.each(
    [...bad, null, {}, [], ['A'], true].map((value) => [typeof value === 'string' ? value.slice(0, 80) : value, value]),
  )('%o is refused, naming the field', (_shown, value) => {
    expect(() => check('the_field', value)).toThrow(
      expect.objectContaining({
        code: 'invalid_argument',
        details: { field: 'the_field', expected: expect.any(String) },
        message: expect.stringContaining('the_field'),
      }),
    );
  });

  test('the check throws nothing but a LedgerError', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        try {
          check('f', value);
        } catch (error) {
          expect(error).toBeInstanceOf(LedgerError);
        }
      }),
    );
  });
});

describe('reserved event types', () => {
  test('the service writes twelve types of its own', () => {
    expect(new Set(fields.SERVICE_EVENT_TYPES).size).toBe(12);
  });

  test.each([...fields.SERVICE_EVENT_TYPES, 'PING'])('a caller may not append the event type %s', (eventType) => {
    expect(fields.checkEventType('event_type', eventType)).toBe(eventType);
    expect(() => fields.checkCallerEventType('event_type', eventType)).toThrow(
      expect.objectContaining({
        code: 'reserved_event_type',
        message: `The event type ${eventType} is reserved: callers cannot append it.`,
        details: { field: 'event_type', event_type: eventType },
      }),
    );
  });
});

test('the default of a list is 20 items from the first one', () => {
  expect(fields.checkLimit('limit', undefined)).toBe(20);
  expect(fields.checkOffset('offset', undefined)).toBe(0);
});

test('a missing name is refused', () => {
  expect(() => fields.checkName('business_ref', undefined)).toThrow(
    expect.objectContaining({ code: 'invalid_argument' }),
  );
});

describe('actor URIs', () => {
  test('yield the actor id', () => {
    expect(fields.checkActorUri('supplier_svc_id', `svc:actor:${ID}`)).toBe(ID);
  });

  test.each(['', ID, `svc:entity:${ID}`, `svc:actor:${ID.toUpperCase()}`, null, 1, [`svc:actor:${ID}`]])(
    'exclude %j',
    (value) => {
      expect(() => fields.checkActorUri('supplier_svc_id', value)).toThrow(
        expect.objectContaining({
          code: 'invalid_argument',
          details: expect.objectContaining({ field: 'supplier_svc_id' }),
        }),
      );
    },
  );
});

describe('times', () => {
  test('yield milliseconds', () => {
    expect(fields.checkTime('at', '2026-11-21T02:06:39.123+00:00')).toBe(1795226799123);
    expect(fields.checkTime('at', '2026-11-21T02:06:39.123456789Z')).toBe(1795226799123);
  });

  const long = `2026-11-21T02:06:39.${'1'.repeat(10)}Z`;
  test.each(['', 'now', '2026-11-21', long, 1795226799123, null, new Date(0)])('exclude %j', (value) => {
    expect(() => fields.checkTime('at', value)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
  });
});
