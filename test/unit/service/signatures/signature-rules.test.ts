import { createPublicKey, sign, verify } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { hasIdentityR } from '../../../../src/domain/keys/identity-r.ts';
import { verifyDigest } from '../../../../src/domain/keys/key-object.ts';
import { checkPublicKey } from '../../../../src/domain/keys/public-key.ts';
import { verifyingKey } from '../../../../src/domain/keys/verifying-key.ts';
import { checkingKey, signatureCheck } from '../../../../src/service/signatures/signature-check.ts';
import { carriedOver, type Ed25519Vector, ed25519Vectors } from '../../../support/ed25519-vectors.ts';
import { privateKeyOf } from '../../../support/log-keys.ts';
import { signatureOfNonceZero, withLargeS } from '../../../support/nonce-zero.ts';

/**
 * Libraries that accept whatever they are asked, where a test says so: what is still refused is refused by a rule of
 * this service.
 */
const asked = vi.hoisted(() => ({ yes: false, calls: 0 }));
vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  const mocked = (...args: Parameters<typeof crypto.verify>) => {
    if (!asked.yes) return crypto.verify(...args);
    asked.calls += 1;
    return true;
  };
  return { ...crypto, verify: mocked };
});

const { default: sodium } = await import('sodium-native');
const mockedSodium = {
  crypto_sign_verify_detached(...args: Parameters<typeof sodium.crypto_sign_verify_detached>) {
    if (!asked.yes) return sodium.crypto_sign_verify_detached(...args);
    asked.calls += 1;
    return true;
  },
};
const check = await signatureCheck(async () => ({ default: mockedSodium }));
const bytes = (hex: string) => Buffer.from(hex, 'hex');

/**
 * How the client and the command line verify, and how the service does for calls and for stored events: false where the
 * key is refused.
 */
function verdicts({ public_key_hex, message_hex, signature_hex }: Ed25519Vector) {
  const [publicKey, message, signature] = [bytes(public_key_hex), bytes(message_hex), bytes(signature_hex)];
  const key = verifyingKey(publicKey.toString('base64'));
  return {
    client: key !== null && verifyDigest(message, signature, key),
    service: key !== null && check(message, signature, checkingKey(publicKey.toString('base64url'))),
  };
}

describe('the six signatures of ed25519.json', () => {
  test.each(ed25519Vectors)('$what: the key is accepted: $key_accepted, the signature is valid: $valid', (vector) => {
    const base64 = bytes(vector.public_key_hex).toString('base64');
    expect(verifyingKey(base64) !== null).toBe(vector.key_accepted);
    if (!vector.key_accepted)
      expect(() => checkPublicKey(base64)).toThrow(expect.objectContaining({ code: 'invalid_public_key' }));
    const { valid } = vector;
    expect(verdicts(vector)).toEqual({ client: valid, service: valid });
  });
});

/** Tests of the whole service take signatures that are carried over: no message of the vectors is an event's digest. */
describe('a signature of ed25519.json that is carried over to another message', () => {
  const ofEnrolled = ed25519Vectors.filter(({ key_accepted }) => key_accepted);
  const other = Buffer.alloc(32, 8);
  /** With cofactor, and R and keys of any order. */
  const isLenientlyValid = ({ public_key_hex }: Ed25519Vector, signature: Uint8Array, message: Uint8Array) =>
    ed25519.verify(signature, message, bytes(public_key_hex), { zip215: true });

  test.each(ofEnrolled)('is of the same kind, and decided alike: $what', (vector) => {
    const [signature, message] = [bytes(vector.signature_hex), bytes(vector.message_hex)];
    expect(carriedOver(vector, message)).toEqual(signature);
    const carried = carriedOver(vector, other);
    expect(isLenientlyValid(vector, carried, other)).toBe(isLenientlyValid(vector, signature, message));
    const { valid } = vector;
    const there = { ...vector, message_hex: other.toString('hex'), signature_hex: carried.toString('hex') };
    expect(verdicts(there)).toEqual({ client: valid, service: valid });
  });

  test('three verify with cofactor, and the fourth is an honest one with S + L', () => {
    const [honest, ...rest] = ofEnrolled.map((vector) => carriedOver(vector, other));
    const lenient = ofEnrolled.map((vector) => isLenientlyValid(vector, carriedOver(vector, other), other));
    expect(lenient).toEqual([true, true, true, false]);
    expect(rest.at(-1)).toEqual(withLargeS(honest ?? Buffer.alloc(64)));
  });
});

describe('a signature whose R is the identity point', () => {
  const seed = Buffer.alloc(32, 5);
  const privateKey = privateKeyOf(seed.toString('hex'));
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const publicKey = Buffer.from(x, 'base64url');
  const message = Buffer.alloc(32, 6);
  const of = (signature: Buffer): Ed25519Vector => ({
    what: '',
    public_key_hex: publicKey.toString('hex'),
    message_hex: message.toString('hex'),
    signature_hex: signature.toString('hex'),
    key_accepted: true,
    valid: false,
  });

  test('is refused though every library accepts it, before any is asked', () => {
    asked.yes = true;
    onTestFinished(() => {
      asked.yes = false;
    });
    asked.calls = 0;
    const nonceZero = of(signatureOfNonceZero(seed, publicKey, message));
    expect(verdicts(nonceZero)).toEqual({ client: false, service: false });
    expect(asked.calls).toBe(0);
    expect(verdicts(of(Buffer.alloc(64, 1)))).toEqual({ client: true, service: true });
    expect(asked.calls).toBe(2);
  });

  test('is told from every other R', () => {
    const identity = Buffer.from([1, ...new Uint8Array(63)]);
    expect(hasIdentityR(identity)).toBe(true);
    for (let at = 0; at < 32; at++) {
      const other = Buffer.from(identity);
      other[at] = (other[at] ?? 0) ^ 0x80;
      expect([at, hasIdentityR(other)]).toEqual([at, false]);
    }
    const anyS = Buffer.from(identity).fill(0xff, 32);
    expect(hasIdentityR(anyS)).toBe(true);
    expect(hasIdentityR(sign(null, message, privateKey))).toBe(false);
    expect(verify(null, message, createPublicKey(privateKey), sign(null, message, privateKey))).toBe(true);
  });
});
