import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import sodium from 'sodium-native';
import { describe, expect, test } from 'vitest';
import { verifyDigest } from '../../../../src/domain/keys/key-object.ts';
import { checkingKey, signatureCheck } from '../../../../src/service/signatures/signature-check.ts';
import { identityPoint, signatureOfNonceZero } from '../../../support/nonce-zero.ts';
import { readVectors } from '../../../support/vectors.ts';

/** A key, a message and a signature, in hex. */
interface Case {
  readonly name: string;
  readonly key: string;
  readonly message: string;
  readonly signature: string;
}

const speccheck = readVectors<{ message: string; pub_key: string; signature: string }[]>('ed25519-speccheck.json');
const wycheproof = readVectors<{ id: number; key: string; msg: string; sig: string }[]>('ed25519-wycheproof.json');
const oddKeys = readVectors<{ key: string }[]>('ed25519-cctv-keys.json');

/** An order of 1: R and S of a signature that some libraries take under keys of small order. */
const identityR = identityPoint.toString('hex');
const zero = '00'.repeat(32);

const cases: readonly Case[] = [
  nonceZero(),
  ...speccheck.map(({ pub_key: key, ...of }, at) => ({ name: `speccheck ${at}`, key, ...of })),
  ...wycheproof.map(({ id, key, msg, sig }) => ({ name: `wycheproof ${id}`, key, message: msg, signature: sig })),
  ...oddKeys.flatMap(({ key }, at) => [
    { name: `CCTV key ${at}, R of order 1`, key, message: '00'.repeat(32), signature: identityR + zero },
    { name: `CCTV key ${at}, R the key itself`, key, message: 'ff'.repeat(32), signature: key + zero },
  ]),
].filter(({ signature }) => signature.length === 128);

/** A signature of a nonce of 0 under the key of a seed. */
function nonceZero(): Case {
  const seed = Buffer.alloc(sodium.crypto_sign_SEEDBYTES, 7);
  const key = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES);
  const pair = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(key, pair, seed);
  const message = Buffer.alloc(32, 9);
  const signature = signatureOfNonceZero(seed, key, message).toString('hex');
  return { name: 'a nonce of 0', key: key.toString('hex'), message: message.toString('hex'), signature };
}

const check = await signatureCheck();

/** What the service's check, OpenSSL and libsodium alone say. */
function verdictsOf({ key, message, signature }: Case) {
  const x = Buffer.from(key, 'hex').toString('base64url');
  const [digest, sig] = [Buffer.from(message, 'hex'), Buffer.from(signature, 'hex')];
  return {
    checked: check(digest, sig, checkingKey(x)),
    openssl: verifyDigest(digest, sig, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })),
    sodium: sodium.crypto_sign_verify_detached(sig, digest, Buffer.from(key, 'hex')),
  };
}

describe('the quick check answers as OpenSSL does, whatever the key and the signature', () => {
  test.each(cases)('$name', (one) => {
    const { checked, openssl, sodium: quick } = verdictsOf(one);
    expect(checked).toBe(openssl);
    // That libsodium is asked alone rests on this.
    if (quick) expect(openssl).toBe(true);
  });

  test('the cases hold signatures that verify and ones that do not', () => {
    const verdicts = cases.map(verdictsOf).map(({ checked, sodium: quick }) => `${quick} ${checked}`);
    expect(new Set(verdicts)).toEqual(new Set(['true true', 'false false']));
  });

  test('signatures of random keys verify, and with any byte changed they do not', () => {
    for (let round = 0; round < 20; round++) {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519');
      const key = checkingKey(publicKey.export({ format: 'jwk' }).x ?? '');
      const digest = randomBytes(32);
      const signature = sign(null, digest, privateKey);
      expect(check(digest, signature, key)).toBe(true);
      const at = randomBytes(1).readUInt8() % 64;
      signature[at] = (signature[at] ?? 0) ^ 1;
      expect(check(digest, signature, key)).toBe(false);
    }
  });
});
