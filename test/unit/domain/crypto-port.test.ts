import * as builtin from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { platformCrypto } from '../../../src/domain/keys/crypto.ts';
import { nobleCrypto } from '../../../src/domain/keys/crypto-noble.ts';
import { nodeCrypto } from '../../../src/domain/keys/crypto-node.ts';
import { checkPublicKey } from '../../../src/domain/keys/public-key.ts';
import { digestVerifier } from '../../../src/domain/keys/signature.ts';
import { verifyingKey } from '../../../src/domain/keys/verifying-key.ts';
import { ed25519Vectors } from '../../support/ed25519-vectors.ts';
import { readVectors } from '../../support/vectors.ts';

const speccheck = readVectors<{ message: string; pub_key: string; signature: string }[]>('ed25519-speccheck.json');
const cctvKeys = readVectors<{ key: string }[]>('ed25519-cctv-keys.json');
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const hex = (data: Uint8Array) => Buffer.from(data).toString('hex');

const node = nodeCrypto(builtin);
const ports = [
  { name: 'node:crypto', port: node },
  { name: 'noble', port: nobleCrypto },
];

describe.each(ports)('the crypto port on $name', ({ port }) => {
  test.each(ed25519Vectors)('judges as the vectors say: $what', (vector) => {
    const verify = digestVerifier(base64(vector.public_key_hex), port);
    expect(verify !== null).toBe(vector.key_accepted);
    expect(verify?.(bytes(vector.message_hex), bytes(vector.signature_hex)) ?? false).toBe(vector.valid);
  });

  test('accepts no signature of the speccheck cases: their keys or their S are not canonical', () => {
    const accepted = speccheck.filter(({ message, pub_key, signature }) =>
      digestVerifier(base64(pub_key), port)?.(bytes(message), bytes(signature)),
    );
    expect(accepted).toEqual([]);
  });

  test('gives the public key and the signature of RFC 8032, test 2', () => {
    const seed = bytes('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');
    expect(hex(port.ed25519PublicKey(seed))).toBe('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c');
    expect(hex(port.ed25519Signer(seed)(bytes('72')))).toBe(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    );
  });

  test('refuses a signature with one changed bit, or of another message', () => {
    const seed = new Uint8Array(32).fill(7);
    const message = new Uint8Array(32).fill(1);
    const signature = port.ed25519Signer(seed)(message);
    const verify = port.ed25519Verifier(port.ed25519PublicKey(seed));
    expect(verify(message, signature)).toBe(true);
    expect(verify(new Uint8Array(32), signature)).toBe(false);
    for (const at of [0, 31, 32, 63]) {
      const changed = Uint8Array.from(signature);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect([at, verify(message, changed)]).toEqual([at, false]);
    }
  });

  test('hashes bytes and the UTF-8 of texts', () => {
    const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    expect(port.sha256Hex('abc')).toBe(expected);
    expect(hex(port.sha256(bytes('616263')))).toBe(expected);
    expect(port.sha256Hex('é\u{1f600}\ud800')).toBe(node.sha256Hex(Buffer.from('é\u{1f600}\ufffd')));
  });

  test('makes the MAC of RFC 4231, test 2, of its parts', () => {
    const mac = port.hmacSha256(new TextEncoder().encode('Jefe'));
    const expected = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
    expect(hex(mac('what do ya want ', new TextEncoder().encode('for nothing?')))).toBe(expected);
    expect(hex(mac('what do ya want for nothing?'))).toBe(expected);
  });

  test('encodes hex and base64', () => {
    expect(hex(port.fromHex('00ff7f'))).toBe('00ff7f');
    expect(port.toBase64(bytes('00ff7f80'))).toBe('AP9/gA==');
    expect(hex(port.fromBase64('AP9/gA=='))).toBe('00ff7f80');
    expect(port.fromBase64('\u00e9').length).toBe(0);
  });
});

test('Node uses its own crypto module', () => {
  expect(platformCrypto.sha256.toString()).toBe(node.sha256.toString());
});

test('libsodium and noble accept the same public keys', () => {
  const keys = [
    ...cctvKeys.map(({ key }) => key),
    ...speccheck.map(({ pub_key }) => pub_key),
    ...ed25519Vectors.map(({ public_key_hex }) => public_key_hex),
  ].map(base64);
  const accepted = (check: (key: string) => unknown) =>
    keys.filter((key) => {
      try {
        return check(key) !== null;
      } catch {
        return false;
      }
    });
  expect(accepted(verifyingKey)).toEqual(accepted((key) => checkPublicKey(key)));
  expect(accepted(verifyingKey).length).toBeGreaterThan(2);
});
