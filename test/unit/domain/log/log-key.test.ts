import { describe, expect, test } from 'vitest';
import { formatVkey, keyIdOf, logKey, parseVkey } from '../../../../src/domain/log/log-key.ts';
import { ed25519Vectors as ed25519 } from '../../../support/ed25519-vectors.ts';
import { knownKey, vectorKey } from '../../../support/log-keys.ts';
import { hexOf, logVectors, ofHex } from '../../../support/log-vectors.ts';

const { ledger, masters } = logVectors;
const publicKey = logVectors.log_key.public_key_base64;

test.each([ledger, ...masters])('the vkey of the vectors is made and read: $vkey', ({ origin, vkey }) => {
  expect(formatVkey(origin, vectorKey.publicKey)).toBe(vkey);
  const parsed = parseVkey(vkey);
  expect(parsed?.origin).toBe(origin);
  expect(hexOf(parsed?.key.publicKey ?? Buffer.alloc(0))).toBe(hexOf(vectorKey.publicKey));
});

test('the id of a key depends on the origin and on the key', () => {
  const other = knownKey(logVectors.endorsement.public_key_base64);
  const ids = [ledger, ...masters].flatMap(({ origin }) => [
    keyIdOf(origin, vectorKey.publicKey),
    keyIdOf(origin, other.publicKey),
  ]);
  expect(new Set(ids).size).toBe(6);
  expect(ids[0]).toBe('9b9a8bd1');
});

describe('a log key', () => {
  test.each(ed25519)('is judged by the one rule for keys and signatures: $what', (vector) => {
    const key = logKey(ofHex(vector.public_key_hex).toString('base64'));
    expect(key !== null).toBe(vector.key_accepted);
    const isValid = key?.verify(ofHex(vector.message_hex), ofHex(vector.signature_hex)) ?? false;
    expect(isValid).toBe(vector.valid);
  });

  test.each(ed25519)('in a vkey is judged by the same rule: $what', ({ public_key_hex, key_accepted }) => {
    const vkey = formatVkey(ledger.origin, ofHex(public_key_hex));
    expect(parseVkey(vkey) !== null).toBe(key_accepted);
  });

  test.each(['', 'x', publicKey.slice(0, -1), publicKey.replace('88=', '89='), logVectors.log_key.seed_hex])(
    'is 32 bytes in strict base64, so it is not %j',
    (text) => {
      expect(logKey(text)).toBeNull();
    },
  );
});

const [name = '', keyId = '', encoded = ''] = ledger.vkey.split('+');
test.each([
  ['an empty name', `+${keyId}+${encoded}`],
  ['no key', `${name}+${keyId}+`],
  ['another key id', `${name}+${masters[0]?.vkey.split('+')[1]}+${encoded}`],
  ['the key id of another name', `x${ledger.vkey}`],
  ['a key id in upper case', `${name}+${keyId.toUpperCase()}+${encoded}`],
  ['a key id of 7 digits', `${name}+${keyId.slice(1)}+${encoded}`],
  ['a key without its type', `${name}+${keyId}+${logVectors.log_key.public_key_base64}`],
  ['another type of key', `${name}+${keyId}+BFtdGZp0oiyz5r4XKeSlZ87jbYHaTYmUrDeudIH70r/P`],
  ['base64url', `${name}+${keyId}+${encoded.replaceAll('/', '_')}`],
  ['a line feed at the end', `${ledger.vkey}\n`],
])('a vkey is refused with %s', (_, text) => {
  expect(text).not.toBe(ledger.vkey);
  expect(parseVkey(text)).toBeNull();
});
