import { expect, test } from 'vitest';
import { signDigest } from '../../../../src/domain/keys/key-object.ts';
import { endorsementDigest, isEndorsed } from '../../../../src/domain/log/endorsement.ts';
import { privateKeyOf, vectorKey } from '../../../support/log-keys.ts';
import { hexOf, logVectors } from '../../../support/log-vectors.ts';
import { vectors } from '../../../support/vectors.ts';

const { digest_hex, public_key_base64, sig } = logVectors.endorsement;
const endorsement = { serviceName: 'ledger.example/v1', publicKey: vectorKey.publicKey };

test('the endorsement of the vectors is made and verifies', () => {
  const digest = endorsementDigest(endorsement);
  expect(hexOf(digest)).toBe(digest_hex);
  expect(vectors.keys.authority.public_key_base64).toBe(public_key_base64);
  expect(signDigest(digest, privateKeyOf(vectors.keys.authority.seed_hex))).toBe(sig);
  expect(isEndorsed(endorsement, sig, public_key_base64)).toBe(true);
});

test('an endorsement is of one service, one log key and one authority key', () => {
  expect(isEndorsed({ ...endorsement, serviceName: 'ledger.example/v2' }, sig, public_key_base64)).toBe(false);
  expect(isEndorsed({ ...endorsement, publicKey: Buffer.alloc(32, 1) }, sig, public_key_base64)).toBe(false);
  expect(isEndorsed(endorsement, sig, logVectors.log_key.public_key_base64)).toBe(false);
});

test('an endorsement with a key or a signature of another form does not verify', () => {
  const identityKey = Buffer.from([1, ...Buffer.alloc(31)]).toString('base64');
  const anySignature = Buffer.from([1, ...Buffer.alloc(63)]).toString('base64');
  expect(isEndorsed(endorsement, anySignature, identityKey)).toBe(false);
  expect(isEndorsed(endorsement, sig, '')).toBe(false);
  for (const wrong of ['', sig.slice(0, -2), `${sig}\n`, sig.replaceAll('+', '-')])
    expect(isEndorsed(endorsement, wrong, public_key_base64)).toBe(false);
});

test('there is no digest for another form of name or key', () => {
  expect(() => endorsementDigest({ ...endorsement, serviceName: 'Ledger.example' })).toThrow(RangeError);
  expect(() => endorsementDigest({ ...endorsement, serviceName: 'ledger.example\0' })).toThrow(RangeError);
  expect(() => endorsementDigest({ ...endorsement, publicKey: Buffer.alloc(31) })).toThrow(RangeError);
});
