import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { keyObject, signDigest, verifyDigest } from '../../../src/domain/keys/key-object.ts';
import { checkPublicKey } from '../../../src/domain/keys/public-key.ts';
import {
  actorKid,
  authorityKid,
  checkSignatureForm,
  kidFromPath,
  parseAuthorityKid,
  parseKid,
  sigDigest,
} from '../../../src/domain/keys/signature.ts';
import { privateKeyOf } from '../../support/log-keys.ts';
import { vectors as golden, readVectors } from '../../support/vectors.ts';

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}

describe('golden vectors', () => {
  const key = keyObject(checkPublicKey(golden.keys.supplier.public_key_base64));
  const signer = privateKeyOf(golden.keys.supplier.seed_hex);

  test.each(golden.signatures)('$name has the digest and signature of the vectors, which verifies', (vector) => {
    const digest = sigDigest(vector.event_type, vector.ledger_id, vector.canonical_json);
    expect(Buffer.from(digest).toString('hex')).toBe(vector.digest_hex);
    expect(signDigest(digest, signer)).toBe(vector.signature_base64);
    expect(verifyDigest(digest, checkSignatureForm(vector.signature_base64), key)).toBe(true);
  });

  test.each(golden.signatures)('$name does not verify for another type, ledger or payload', (vector) => {
    const signature = checkSignatureForm(vector.signature_base64);
    const { event_type, ledger_id, canonical_json } = vector;
    const others = [
      sigDigest(`${event_type}X`, ledger_id, canonical_json),
      sigDigest(event_type.toLowerCase(), ledger_id, canonical_json),
      sigDigest(event_type, ledger_id.replace(/.$/, '9'), canonical_json),
      sigDigest(event_type, ledger_id, canonical_json.replace(/}$/, ' }')),
    ];
    for (const digest of others) expect(verifyDigest(digest, signature, key)).toBe(false);
  });

  test('a signature with one changed bit does not verify', () => {
    const vector = golden.signatures[0];
    if (vector === undefined) throw new Error('no golden vectors');
    const digest = bytes(vector.digest_hex);
    for (let bit = 0; bit < 512; bit += 1) {
      const signature = Buffer.from(vector.signature_base64, 'base64');
      signature[bit >> 3] = (signature[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(verifyDigest(digest, signature, key)).toBe(false);
    }
  });

  test('half a surrogate pair in the event type or ledger id is refused', () => {
    expect(() => sigDigest('PAID_\ud800', 'b', '{}')).toThrow(TypeError);
    expect(() => sigDigest('PAID', '\udc00', '{}')).toThrow(TypeError);
  });

  test('a NUL in the event type or ledger id is refused', () => {
    expect(() => sigDigest('A\0B', 'L', '{}')).toThrow(TypeError);
    expect(() => sigDigest('A', 'L\0', '{}')).toThrow(TypeError);
  });

  test('the digest covers UTF-8', () => {
    const expected = createHash('sha256').update('T\0L\0{"€":"😀"}', 'utf8').digest();
    expect(sigDigest('T', 'L', '{"€":"😀"}')).toEqual(expected);
  });
});

describe('RFC 8032, section 7.1', () => {
  test.each([
    {
      name: 'test 1',
      seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      message: '',
      signature:
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    },
    {
      name: 'test 2',
      seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      key: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      message: '72',
      signature:
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    },
    {
      name: 'test 3',
      seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      key: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      message: 'af82',
      signature:
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    },
    {
      name: 'test SHA(abc)',
      seed: '833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42',
      key: 'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
      message: createHash('sha512').update('abc').digest('hex'),
      signature:
        'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
    },
  ])('$name signs and verifies as published', ({ seed, key, message, signature }) => {
    expect(signDigest(bytes(message), privateKeyOf(seed))).toBe(bytes(signature).toString('base64'));
    const publicKey = checkPublicKey(bytes(key).toString('base64'));
    expect(verifyDigest(bytes(message), bytes(signature), keyObject(publicKey))).toBe(true);
  });
});

test.each(
  readVectors<{ message: string; pub_key: string; signature: string }[]>('ed25519-speccheck.json').map(
    (vector, index) => ({ index, ...vector }),
  ),
)('speccheck $index is refused as a key or does not verify', ({ message, pub_key, signature }) => {
  let isAccepted: boolean;
  try {
    const key = checkPublicKey(bytes(pub_key).toString('base64'));
    isAccepted = verifyDigest(bytes(message), bytes(signature), keyObject(key));
  } catch (error) {
    expect(error).toHaveProperty('code', 'invalid_public_key');
    isAccepted = false;
  }
  expect(isAccepted).toBe(false);
});

test.each(
  readVectors<{ id: number; comment: string; key: string; msg: string; sig: string; valid: boolean }[]>(
    'ed25519-wycheproof.json',
  ),
)('wycheproof $id ($comment) verifies: $valid', ({ key, msg, sig, valid }) => {
  const publicKey = keyObject(checkPublicKey(bytes(key).toString('base64')));
  let isValid: boolean;
  try {
    isValid = verifyDigest(bytes(msg), checkSignatureForm(bytes(sig).toString('base64')), publicKey);
  } catch (error) {
    expect(error).toHaveProperty('code', 'invalid_signature');
    isValid = false;
  }
  expect(isValid).toBe(valid);
});

describe('the form of a signature', () => {
  const good = golden.signatures[0]?.signature_base64 ?? '';
  test('is 64 bytes in standard base64', () => {
    expect(checkSignatureForm(good)).toHaveLength(64);
  });

  test.each([
    ['nothing', ''],
    ['63 bytes', Buffer.alloc(63).toString('base64')],
    ['65 bytes', Buffer.alloc(65).toString('base64')],
    ['half padding', good.slice(0, -1)],
    ['no padding', good.slice(0, -2)],
    ['base64url', `${'-_'.repeat(43)}==`],
    ['stray bits', `${Buffer.alloc(64).toString('base64').slice(0, -3)}B==`],
    ['two headers joined by a comma', `${good}, ${good}`],
    ['hex', Buffer.alloc(64).toString('hex')],
    ['a space before', ` ${good}`],
    ['a line break behind', `${good}\n`],
    ['a NUL', `${good.slice(0, 40)}\0${good.slice(41)}`],
  ])('is invalid with %s', (_, text) => {
    expect(() => checkSignatureForm(text)).toThrow(expect.objectContaining({ code: 'invalid_signature' }));
  });
});

describe('key ids', () => {
  const actorId = '0193a000-0000-7000-8000-00000000000a';
  const other = '0193a000-0000-7000-8000-00000000000b';

  test('are parsed as they were written', () => {
    expect(parseKid(golden.kid)).toEqual({ actorId, number: 1 });
    expect(parseKid(actorKid(actorId, 1203))).toEqual({ actorId, number: 1203 });
    expect(parseAuthorityKid(authorityKid(7))).toBe(7);
  });

  const kid = `svc:actor:${actorId}#key-1`;
  const numbers = ['', '0', '01', '+1', '1.0', '1e3', '٣', '9999999999999999999', '1 ', '1\n', '1#key-2'];
  const others = [
    ...['', 'key-1', `svc:actor:${actorId}`, kid.replace('#k', '#K'), kid.replace('svc', 'SVC'), ` ${kid}`],
    ...[kid.replace(actorId, actorId.toUpperCase()), kid.replace(actorId, `{${actorId}}`), kid.replace('#', '%23')],
    ...[`${kid}, ${kid}`, kid.replace('actor', 'entity'), 'svc:authority#key-1'],
  ];
  test.each([...numbers.map((number) => `svc:actor:${actorId}#key-${number}`), ...others])(
    'of actors do not include %j',
    (text) => {
      expect(parseKid(text)).toBeNull();
    },
  );

  test.each([
    'svc:authority#key-01',
    'svc:authority#key-0',
    'svc:authority',
    'svc:Authority#key-1',
    'svc:authority#key-1\n',
    golden.kid,
  ])('of the authority do not include %j', (text) => {
    expect(parseAuthorityKid(text)).toBeNull();
  });

  test('in a path are the short form or the full form of the same actor', () => {
    expect(kidFromPath(actorId, 'key-2')).toBe(actorKid(actorId, 2));
    expect(kidFromPath(actorId, actorKid(actorId, 2))).toBe(actorKid(actorId, 2));
    const wrong = ['key-02', 'key-0', 'KEY-2', '2', '#key-2', 'key-2 ', 'svc:authority#key-2', actorKid(other, 2), ''];
    for (const text of wrong) {
      expect(kidFromPath(actorId, text)).toBeNull();
    }
  });
});
