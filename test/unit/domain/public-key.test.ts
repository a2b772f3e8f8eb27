import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { keyObject } from '../../../src/domain/keys/key-object.ts';
import { checkPublicKey, fingerprint } from '../../../src/domain/keys/public-key.ts';
import { readVectors } from '../../support/vectors.ts';

const refused = expect.objectContaining({ name: 'LedgerError', code: 'invalid_public_key' });

function base64(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64');
}

/** y = `reduced` + p, little-endian: the encodings that reach p and more. */
function nonCanonical(reduced: number, signBit: number): string {
  const bytes = Buffer.alloc(32, 0xff);
  bytes[0] = 0xed + reduced;
  bytes[31] = 0x7f | signBit;
  return bytes.toString('hex');
}

const speccheck = readVectors<{ message: string; pub_key: string; signature: string }[]>('ed25519-speccheck.json');
const cctvKeys = readVectors<{ key: string; flags: string[] }[]>('ed25519-cctv-keys.json');

describe('accepted keys', () => {
  test('100 fresh keys pass, unchanged', () => {
    for (let count = 0; count < 100; count += 1) {
      const spki = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' });
      const raw = spki.subarray(-32);
      expect(Buffer.from(checkPublicKey(raw.toString('base64')))).toEqual(raw);
    }
  });

  test.each([
    ['RFC 8032 test 1', 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'],
    ['RFC 8032 test 2', '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'],
    ['the base point', '5866666666666666666666666666666666666666666666666666666666666666'],
  ])('%s is accepted unchanged', (_, hex) => {
    expect(Buffer.from(checkPublicKey(base64(hex))).toString('hex')).toBe(hex);
  });

  test('the only flawless key of CCTV is accepted', () => {
    const flawless = cctvKeys.filter(({ flags }) => flags.length === 0);
    expect(flawless).toHaveLength(1);
    for (const { key } of flawless) expect(checkPublicKey(base64(key))).toHaveLength(32);
  });

  test('the fingerprint is the SHA-256 of the 32 bytes', () => {
    const key = checkPublicKey('11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=');
    expect(fingerprint(key)).toBe('21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9');
  });
});

describe('refused keys', () => {
  test.each(cctvKeys.filter(({ flags }) => flags.length > 0))('CCTV $key ($flags) is refused', ({ key }) => {
    expect(() => checkPublicKey(base64(key))).toThrow(refused);
  });

  test.each(speccheck.map(({ pub_key }, index) => ({ index, pub_key })))(
    'the key of speccheck $index is refused unless it is sound',
    ({ index, pub_key }) => {
      // Cases 6 and 7 have a sound key and a signature with S not below the group order.
      if (index === 6 || index === 7) expect(checkPublicKey(base64(pub_key))).toHaveLength(32);
      else expect(() => checkPublicKey(base64(pub_key))).toThrow(refused);
    },
  );

  test('every encoding of y that is p or more is refused as not canonical', () => {
    const notCanonical = expect.objectContaining({ message: expect.stringContaining('canonical encoding') });
    for (let reduced = 0; reduced < 19; reduced += 1) {
      for (const signBit of [0, 0x80]) {
        expect(() => checkPublicKey(base64(nonCanonical(reduced, signBit)))).toThrow(notCanonical);
      }
    }
  });

  test('a y just below p is refused for its order, not for its encoding', () => {
    const bytes = Buffer.from(nonCanonical(0, 0), 'hex');
    bytes[0] = 0xe9; // p - 4: the x coordinate exists and the point has a part of small order
    expect(() => checkPublicKey(bytes.toString('base64'))).toThrow(
      expect.objectContaining({ message: expect.stringContaining('prime order') }),
    );
  });

  test('about half of all 32-byte strings are refused because they are no points', () => {
    let refusals = 0;
    for (let first = 0; first < 64; first += 1) {
      const bytes = Buffer.alloc(32, 7);
      bytes[0] = first;
      try {
        checkPublicKey(bytes.toString('base64'));
      } catch (error) {
        expect(error).toEqual(refused);
        refusals += 1;
      }
    }
    expect(refusals).toBeGreaterThan(32);
  });

  const good = base64('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  test.each([
    ['nothing', ''],
    ['31 bytes', Buffer.alloc(31, 1).toString('base64')],
    ['33 bytes', Buffer.alloc(33, 1).toString('base64')],
    ['a key in SPKI', `MCowBQYDK2VwAyEA${good}`],
    ['hex', 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'],
    ['no padding', good.slice(0, -1)],
    ['base64url', good.replaceAll('+', '-').replaceAll('/', '_')],
    ['stray bits at the end', `${good.slice(0, -2)}p=`],
    ['a line break', `${good}\n`],
    ['a space within', `${good.slice(0, 20)} ${good.slice(21)}`],
  ])('%s is refused', (_, text) => {
    expect(text).not.toBe(good);
    expect(() => checkPublicKey(text)).toThrow(refused);
  });
});

describe('reasons for the check', () => {
  test('a signature under a key of mixed order passes plain verification, so the key must be checked first', () => {
    const mixed = speccheck[3];
    if (mixed === undefined) throw new Error('no case 3');
    const key = keyObject(Buffer.from(mixed.pub_key, 'hex'));
    expect(verify(null, Buffer.from(mixed.message, 'hex'), key, Buffer.from(mixed.signature, 'hex'))).toBe(true);
    expect(() => checkPublicKey(base64(mixed.pub_key))).toThrow(refused);
  });

  test('a key object verifies the signatures of its private key', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    expect(keyObject(raw).equals(publicKey)).toBe(true);
    expect(verify(null, Buffer.from('x'), keyObject(raw), sign(null, Buffer.from('x'), privateKey))).toBe(true);
  });
});
