import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { canonicalize } from 'json-canonicalize';
import { describe, expect, test } from 'vitest';
import { canonicalJson, canonicalNumber, canonicalString } from '../../../src/domain/json/canonical.ts';
import { parseJson, parseJsonBytes } from '../../../src/domain/json/json.ts';

const vectors = new URL('../../vectors/', import.meta.url);

describe('RFC 8785', () => {
  test.each(['arrays', 'french', 'structures', 'unicode', 'values', 'weird'])(
    'the test data %s has the published canonical text',
    (name) => {
      const input = readFileSync(new URL(`jcs/input/${name}.json`, vectors));
      const output = readFileSync(new URL(`jcs/output/${name}.json`, vectors), 'utf8');
      expect(parseJsonBytes(input).canonical).toBe(output);
      expect(canonicalJson(JSON.parse(input.toString()))).toBe(output);
    },
  );

  /** IEEE 754 bits and text, RFC 8785 appendix B. */
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('the number with the bits %s is written as %s', (bits, text) => {
    const value = Buffer.from(bits, 'hex').readDoubleBE();
    expect(canonicalNumber(value)).toBe(text);
    expect(parseJson(text).canonical).toBe(text);
  });

  test('10,000 numbers of the published sequence have the published checksum, and each text reads back as itself', () => {
    const hash = createHash('sha256');
    let block: Buffer = Buffer.alloc(32);
    let lines = 0;
    for (const bits of [
      ...sequenceStart(),
      ...Array.from({ length: 2_000 }, (_, at) => 0x0010000000000000n + BigInt(at)),
    ]) {
      lines += line(bits);
    }
    while (lines < 10_000) {
      block = createHash('sha256').update(block).digest();
      for (let at = 0; at < 32 && lines < 10_000; at += 8) lines += line(block.readBigUInt64LE(at));
    }
    expect(hash.digest('hex')).toBe('b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892');

    function line(bits: bigint): number {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64BE(bits);
      const value = bytes.readDoubleBE();
      if (!Number.isFinite(value)) return 0;
      const text = canonicalNumber(value);
      expect(parseJson(text).canonical).toBe(text);
      hash.update(`${bits.toString(16)},${text}\n`);
      return 1;
    }
  });
});

describe('golden vectors', () => {
  const golden: { signatures: { name: string; sig_payload: unknown; canonical_json: string }[] } = JSON.parse(
    readFileSync(new URL('events.json', vectors), 'utf8'),
  );
  test.each(golden.signatures)('$name has the published canonical text', ({ sig_payload, canonical_json }) => {
    expect(canonicalJson(sig_payload)).toBe(canonical_json);
    expect(parseJson(JSON.stringify(sig_payload, null, 2)).canonical).toBe(canonical_json);
  });
});

describe('canonical text of values', () => {
  test.each([
    ['a member named toJSON is data', { b: 1, a: 2, toJSON: 'x' }, '{"a":2,"b":1,"toJSON":"x"}'],
    ['__proto__ as own member', JSON.parse('{"b":1,"__proto__":{"x":1}}'), '{"__proto__":{"x":1},"b":1}'],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['negative zero', [-0], '[0]'],
    ['keys by UTF-16 code units', { '\ue000': 1, '\u{1f600}': 2 }, '{"\u{1f600}":2,"\ue000":1}'],
    ['integer keys are texts', { 10: 1, 9: 2 }, '{"10":1,"9":2}'],
  ])('%s', (_, value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test('the same object may occur in two places', () => {
    const shared = { x: 1 };
    expect(canonicalJson({ a: shared, ab: shared, b: [shared, shared] })).toBe(
      '{"a":{"x":1},"ab":{"x":1},"b":[{"x":1},{"x":1}]}',
    );
  });

  const circular: unknown[] = [];
  circular.push(circular);
  test.each([
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['an undefined item', [undefined]],
    ['a hole', new Array(1)],
    ['NaN', Number.NaN],
    ['Infinity', { a: Number.POSITIVE_INFINITY }],
    ['a bigint', 1n],
    ['a symbol', Symbol('a')],
    ['a function', () => 1],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['bytes', Buffer.from('a')],
    ['a circle', circular],
  ])('%s has no JSON text', (_, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });

  test.each(['\ud800', 'a\udc00', '\ude00\ud83d'])(
    'a lone surrogate is invalid_string in a value and in a key (%j)',
    (text) => {
      const refused = expect.objectContaining({ code: 'invalid_string' });
      expect(() => canonicalString(text)).toThrow(refused);
      expect(() => canonicalJson([text])).toThrow(refused);
      expect(() => canonicalJson({ [text]: 1 })).toThrow(refused);
    },
  );

  test('the text agrees with an independent canonicalizer and with the reader', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = canonicalJson(value);
        expect(text).toBe(canonicalize(value));
        expect(parseJson(text).canonical).toBe(text);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });
});

const SEQUENCE_START = `
  0000000000000000 8000000000000000 0000000000000001 8000000000000001 c46696695dbd1cc3 c43211ede4974a35 c3fce97ca0f21056
  c3c7213080c1a6ac c39280f39a348556 c35d9b1f5d20d557 c327af4c4a80aaac c2f2f2a36ecd5556 c2be51057e155558 c28840d131aaaaac
  c253670dc1555557 c21f0b4935555557 c1e8d5d42aaaaaac c1b3de4355555556 c17fca0555555556 c1496e6aaaaaaaab c114585555555555
  c0e046aaaaaaaaab c0aa0aaaaaaaaaaa c074d55555555555 c040aaaaaaaaaaab c00aaaaaaaaaaaab bfd5555555555555 bfa1111111111111
  bf6b4e81b4e81b4f bf35d867c3ece2a5 bf0179ec9cbd821e becbf647612f3696 be965e9f80f29212 be61e54c672874db be2ca213d840baf8
  bdf6e80fe033c8c6 bdc2533fe68fd3d2 bd8d51ffd74c861c bd5774ccac3d3817 bd22c3d6f030f9ac bcee0624b3818f79 bcb804ea293472c7
  bc833721ba905bd3 bc4ebe9c5db3c61e bc18987d17c304e5 bbe3ad30dfcf371d bbaf7b816618582f bb792f9ab81379bf bb442615600f9499
  bb101e77800c76e1 bad9ca58cce0be35 baa4a1e0a3e6fe90 ba708180831f320d ba3a68cd9e985016 446696695dbd1cc3 443211ede4974a35
  43fce97ca0f21056 43c7213080c1a6ac 439280f39a348556 435d9b1f5d20d557 4327af4c4a80aaac 42f2f2a36ecd5556 42be51057e155558
  428840d131aaaaac 4253670dc1555557 421f0b4935555557 41e8d5d42aaaaaac 41b3de4355555556 417fca0555555556 41496e6aaaaaaaab
  4114585555555555 40e046aaaaaaaaab 40aa0aaaaaaaaaaa 4074d55555555555 4040aaaaaaaaaaab 400aaaaaaaaaaaab 3fd5555555555555
  3fa1111111111111 3f6b4e81b4e81b4f 3f35d867c3ece2a5 3f0179ec9cbd821e 3ecbf647612f3696 3e965e9f80f29212 3e61e54c672874db
  3e2ca213d840baf8 3df6e80fe033c8c6 3dc2533fe68fd3d2 3d8d51ffd74c861c 3d5774ccac3d3817 3d22c3d6f030f9ac 3cee0624b3818f79
  3cb804ea293472c7 3c833721ba905bd3 3c4ebe9c5db3c61e 3c18987d17c304e5 3be3ad30dfcf371d 3baf7b816618582f 3b792f9ab81379bf
  3b442615600f9499 3b101e77800c76e1 3ad9ca58cce0be35 3aa4a1e0a3e6fe90 3a708180831f320d 3a3a68cd9e985016 4024000000000000
  4014000000000000 3fe0000000000000 3fa999999999999a 3f747ae147ae147b 3f40624dd2f1a9fc 3f0a36e2eb1c432d 3ed4f8b588e368f1
  3ea0c6f7a0b5ed8d 3e6ad7f29abcaf48 3e35798ee2308c3a 3ed539223589fa95 3ed4ff26cd5a7781 3ed4f95a762283ff 3ed4f8c60703520c
  3ed4f8b72f19cd0d 3ed4f8b5b31c0c8d 3ed4f8b58d1c461a 3ed4f8b5894f7f0e 3ed4f8b588ee37f3 3ed4f8b588e47da4 3ed4f8b588e3849c
  3ed4f8b588e36bb5 3ed4f8b588e36937 3ed4f8b588e368f8 3ed4f8b588e368f1 3ff0000000000000 bff0000000000000 bfeffffffffffffa
  bfeffffffffffffb 3feffffffffffffa 3feffffffffffffb 3feffffffffffffc 3feffffffffffffe bfefffffffffffff bfefffffffffffff
  3fefffffffffffff 3fefffffffffffff 3fd3333333333332 3fd3333333333333 3fd3333333333334 0010000000000000 000ffffffffffffd
  000fffffffffffff 7fefffffffffffff ffefffffffffffff 4340000000000000 c340000000000000 4430000000000000 44b52d02c7e14af5
  44b52d02c7e14af6 44b52d02c7e14af7 444b1ae4d6e2ef4e 444b1ae4d6e2ef4f 444b1ae4d6e2ef50 3eb0c6f7a0b5ed8c 3eb0c6f7a0b5ed8d
  41b3de4355555553 41b3de4355555554 41b3de4355555555 41b3de4355555556 41b3de4355555557 becbf647612f3696 43143ff3c1cb0959
`;

/** The fixed beginning of the published number sequence (see the README of the test data). */
function sequenceStart(): bigint[] {
  return SEQUENCE_START.trim()
    .split(/\s+/)
    .map((hex) => BigInt(`0x${hex}`));
}
