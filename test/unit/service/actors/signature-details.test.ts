import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { signatureDetails, undisclosedDetails } from '../../../../src/service/actors/signature-details.ts';
import type { StatedInput } from '../../../../src/service/calls/call.ts';

const ledgerId = '0193a000-0000-7000-8000-000000000001';
const kid = 'svc:actor:0193a000-0000-7000-8000-00000000000a#key-1';
const expected = '{"note":"Müller & Söhne <dock 7>","pallets":4}';
const digestOf = (canonical: string) => createHash('sha256').update(`NOTED\0${ledgerId}\0${canonical}`).digest('hex');
const base64 = (text: string) => Buffer.from(text).toString('base64');

function detailsOf(stated: StatedInput, forms: readonly [string, ...string[]] = [expected]) {
  return signatureDetails({ eventType: 'NOTED', ledgerId, forms }, kid, stated);
}

const always = {
  event_type: 'NOTED',
  ledger_id: ledgerId,
  expected_canonical_json: expected,
  signing_key_id: kid,
  expected_canonical_bytes: 48,
  expected_digest: digestOf(expected),
};

test('without the two headers the details have the expected form, its length and its digest', () => {
  expect(detailsOf({ digest: null, canonical: null })).toEqual(always);
});

test('an equal digest says that the key or the encoding is wrong', () => {
  const details = detailsOf({ digest: digestOf(expected), canonical: null });
  expect(details).toEqual({ ...always, sent_digest: digestOf(expected), hint: expect.stringMatching(/check the key/) });
});

test('the digest of another accepted form counts as equal, and that form is shown', () => {
  const other = '{"note":null}';
  const details = detailsOf({ digest: digestOf(other), canonical: null }, [expected, other]);
  expect(details).toMatchObject({ expected_canonical_json: other, hint: expect.stringMatching(/check the key/) });
});

test('another digest asks for the canonical JSON', () => {
  const details = detailsOf({ digest: '0'.repeat(64), canonical: null });
  expect(details).toMatchObject({ sent_digest: '0'.repeat(64), hint: expect.stringMatching(/X-Actor-Canonical/) });
});

test('another canonical JSON is shown with the first byte that differs', () => {
  const escaped = '{"note":"M\\u00fcller \\u0026 S\\u00f6hne","pallets":4}';
  expect(detailsOf({ digest: digestOf(escaped), canonical: base64(escaped) })).toEqual({
    ...always,
    sent_digest: digestOf(escaped),
    sent_canonical_json: escaped,
    sent_canonical_bytes: escaped.length,
    first_difference: {
      byte: 10,
      expected: 'üller & Söhne <dock 7>","palle',
      sent: '\\u00fcller \\u0026 S\\u00f6hne","p',
    },
    hint: 'The canonical JSON that you signed differs from the expected one at byte 10.',
  });
});

test('a difference within a character is shown from the start of the character', () => {
  const details = detailsOf({ digest: null, canonical: base64('{"note":"Möller"}') });
  expect(details).toMatchObject({ first_difference: { byte: 11, sent: 'öller"}' } });
});

test('a text that ends early differs where it ends', () => {
  const details = detailsOf({ digest: null, canonical: base64(expected.slice(0, -1)) });
  expect(details).toMatchObject({ first_difference: { byte: 47, expected: '}', sent: '' } });
});

test('the expected form is the one that the sent text is nearest to', () => {
  const forms = ['{"b":"x"}', '{"a":null,"b":"x"}'] as const;
  expect(detailsOf({ digest: null, canonical: base64('{"a":null,"b":"y"}') }, [...forms])).toMatchObject({
    expected_canonical_json: forms[1],
    first_difference: { byte: 15 },
  });
});

test('an equal canonical JSON under another digest says what else is hashed', () => {
  const details = detailsOf({ digest: '0'.repeat(64), canonical: base64(expected) });
  expect(details).toMatchObject({ hint: expect.stringMatching(/event type, .*ledger id/) });
  expect(details).not.toHaveProperty('first_difference');
  const alone = detailsOf({ digest: null, canonical: base64(expected) });
  expect(alone).toMatchObject({ hint: expect.stringMatching(/X-Actor-Digest/) });
});

test.each(['', 'x', '0'.repeat(63), 'A'.repeat(64), `${'0'.repeat(64)}, ${'0'.repeat(64)}`, '0'.repeat(10_000)])(
  'a digest that is none is not repeated: %.20s',
  (digest) => {
    expect(detailsOf({ digest, canonical: null })).toEqual({
      ...always,
      hint: 'X-Actor-Digest is not the SHA-256 in 64 lower-case hexadecimal digits.',
    });
  },
);

test.each(['', 'x', base64(expected).replace(/=+$/, '').slice(0, -1), '{"a":1}', `${base64('{}')}, ${base64('{}')}`])(
  'a canonical JSON that is no base64 is not repeated: %.20s',
  (canonical) => {
    expect(detailsOf({ digest: null, canonical })).toEqual({
      ...always,
      hint: expect.stringMatching(/^X-Actor-Canonical is not/),
    });
  },
);

test('a canonical JSON beyond the bound is not read', () => {
  const bound = 8 * 1024;
  const longest = base64('a'.repeat((bound / 4) * 3));
  expect(longest).toHaveLength(bound);
  expect(detailsOf({ digest: null, canonical: longest })).toHaveProperty('sent_canonical_bytes', (bound / 4) * 3);
  const details = detailsOf({ digest: null, canonical: base64('a'.repeat((bound / 4) * 3 + 1)) });
  expect(details).toEqual({ ...always, hint: expect.stringMatching(/8192 characters/) });
});

test('bytes that are no UTF-8 are compared as bytes', () => {
  const canonical = Buffer.from([0x7b, 0xff]).toString('base64');
  expect(detailsOf({ digest: null, canonical })).toMatchObject({
    sent_canonical_json: '{\ufffd',
    sent_canonical_bytes: 2,
    first_difference: { byte: 1, sent: '\ufffd' },
  });
});

test('undisclosed details repeat what was sent and compare it with nothing', () => {
  const input = { eventType: 'NOTED', ledgerId, forms: [expected] } as const;
  const hint = expect.stringMatching(/only names an entity/);
  const own = { event_type: 'NOTED', signing_key_id: kid, hint };
  expect(undisclosedDetails(input, kid, { digest: null, canonical: null })).toEqual(own);
  for (const guess of [expected, expected.slice(0, 10), '{}']) {
    const sent = {
      sent_digest: digestOf(guess),
      sent_canonical_json: guess,
      sent_canonical_bytes: Buffer.byteLength(guess),
    };
    const stated = { digest: digestOf(guess), canonical: base64(guess) };
    expect(undisclosedDetails(input, kid, stated)).toEqual({ ...own, ...sent });
  }
  const malformed = undisclosedDetails(input, kid, { digest: 'no digest', canonical: null });
  expect(malformed.hint).toMatch(/^X-Actor-Digest is not/);
});
