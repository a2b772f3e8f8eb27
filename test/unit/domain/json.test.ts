import fc from 'fast-check';
import { canonicalize } from 'json-canonicalize';
import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import {
  type AddedMember,
  memberOf,
  parseJson,
  parseJsonBody,
  parseJsonBytes,
  parseJsonField,
  requestValuesMax,
  toValue,
  withMembers,
} from '../../../src/domain/json/json.ts';
import type { JsonObject } from '../../../src/domain/json/json-node.ts';

/** What a text is refused with; undefined if it is read. Anything but a LedgerError fails the test. */
function refusal(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (error instanceof LedgerError) return error.code;
    throw error;
  }
}

function nested(depth: number): string {
  return '['.repeat(depth) + ']'.repeat(depth);
}

describe('reading JSON', () => {
  test.each([
    ['{"b":1,"a":[true,false,null,"x"]}', '{"a":[true,false,null,"x"],"b":1}'],
    [' \t\r\n{ "b" : { } , "a" : [ ] } \n', '{"a":[],"b":{}}'],
    ['"\\u0061\\/\\b\\f\\n\\r\\t\\"\\\\\\u001F\\u007f"', '"a/\\b\\f\\n\\r\\t\\"\\\\\\u001f\u007f"'],
    ['"\\ud83d\\ude00\\u2028"', '"\u{1f600}\u2028"'],
    ['"\u{1f600} \u2028 \u007f"', '"\u{1f600} \u2028 \u007f"'],
    ['{"\\u0062":1,"a":2}', '{"a":2,"b":1}'],
    ['{"":0," ":1}', '{"":0," ":1}'],
    ['0', '0'],
    ['"x"', '"x"'],
  ])('%s becomes %s', (text, canonical) => {
    expect(parseJson(text).canonical).toBe(canonical);
    expect(parseJsonBytes(Buffer.from(text)).canonical).toBe(canonical);
  });

  test('keys are ordered by UTF-16 code units, so U+1F600 stands before U+E000', () => {
    expect(parseJson('{"\ue000":1,"\u{1f600}":2}').canonical).toBe('{"\u{1f600}":2,"\ue000":1}');
  });

  test('every part of a document has its own canonical text', () => {
    const root = parseJson('{"payload": {"z": 1.0, "a": [1E2, "\\u0041"]}, "event_type": "X"}') as JsonObject;
    const payload = memberOf(root, 'payload') as JsonObject;
    expect(payload.canonical).toBe('{"a":[100,"A"],"z":1}');
    expect(memberOf(payload, 'a')?.canonical).toBe('[100,"A"]');
    expect(payload.members.map(({ name }) => name)).toEqual(['a', 'z']);
  });

  test('__proto__ and constructor are ordinary keys and survive into text and value', () => {
    const node = parseJson('{"constructor":2,"__proto__":{"x":1},"toString":null,"hasOwnProperty":0}');
    expect(node.canonical).toBe('{"__proto__":{"x":1},"constructor":2,"hasOwnProperty":0,"toString":null}');
    const value = toValue(node) as object;
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor', 'hasOwnProperty', 'toString']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test('characters that Unicode gives no meaning are kept as they are', () => {
    expect(parseJson('"\uffff\ufdd0\\uFFFE"').canonical).toBe('"\uffff\ufdd0\ufffe"');
  });
});

describe('text that is not JSON', () => {
  const faults = {
    ends: ['', ' ', '{', '}', '[', ']', '{"a":1}}', '{} {}', '1 2', '[1}'],
    separators: ['[1,]', '[,1]', '[1 2]', '{"a":1,}', '{"a"}', '{"a":}', '{"a" 1}'],
    names: ['{a:1}', "{'a':1}"],
    words: ['nul', 'nulll', 'True', 'undefined', 'NaN', 'Infinity'],
    numbers: ['-', '+1', '01', '-01', '1.', '.5', '1e', '1e+', '0x10', '1_000'],
    strings: ['"', '"a', '"\\', '"\\"', '"a\nb"', '"a\tb"', '"\u0000"', '"\\\u0000"'],
    escapes: ['"\\x41"', '"\\u12"', '"\\u12g4"', '"\\U0041"', '"\\u000\n"'],
    comments: ['// c\n1', '/* c */1'],
    space: ['\ufeff{}', '{}\ufeff', '\u00a01', '\u20281', '\v1', '1\f'],
  };

  test.each(Object.values(faults).flat())('%j is invalid_json', (text) => {
    expect(refusal(() => parseJson(text))).toBe('invalid_json');
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  test.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate in UTF-8', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a code point beyond U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['a character cut off', [0x22, 0xe2, 0x82]],
    ['UTF-16', [0xff, 0xfe, 0x31, 0x00]],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x31]],
  ])('bytes with %s are invalid_json', (_, bytes) => {
    expect(refusal(() => parseJsonBytes(Uint8Array.from(bytes)))).toBe('invalid_json');
  });

  test('an error names its offset', () => {
    expect(() => parseJson('{"a": tru}')).toThrow(
      expect.objectContaining({ details: { offset: 6, expected: 'a value' } }),
    );
  });
});

describe('values that a parser would change silently', () => {
  test.each([
    ['{"a":1,"a":1}', 'a', 7],
    ['{"a":1,"b":2,"\\u0061":3}', 'a', 13],
    ['{"b":1,"a":2,"b":3}', 'b', 13],
    ['{"a":2,"b":1,"b":3}', 'b', 13],
    ['{"b":1,"b":3,"a":2}', 'b', 7],
    ['{"__proto__":1,"__proto__":2}', '__proto__', 15],
    ['{"":1,"":2}', '', 6],
    ['[{"x":{"\\n":1,"\\u000a":1}}]', '\n', 14],
  ])('%s has a duplicate key', (text, key, offset) => {
    expect(() => parseJson(text)).toThrow(expect.objectContaining({ code: 'duplicate_key', details: { key, offset } }));
  });

  test('the same key in different objects is no duplicate', () => {
    expect(parseJson('[{"a":{"a":1}},{"a":2}]').canonical).toBe('[{"a":{"a":1}},{"a":2}]');
  });

  test('keys are compared without Unicode normalization', () => {
    expect(parseJson('{"\u00e5":1,"a\u030a":2}').canonical).toBe('{"a\u030a":2,"\u00e5":1}');
  });

  test.each([
    '"\\ud800"',
    '"\\udc00"',
    '"\\ude00\\ud83d"',
    '"\\ud83dx"',
    '"\\ud83d\\n"',
    '{"\\ud800":1}',
    '"a\\uD83D\u{1f600}"',
    '"\ud800"',
    '["\udc00\ud800"]',
  ])('%j has a lone surrogate', (text) => {
    expect(refusal(() => parseJson(text))).toBe('invalid_string');
  });

  test('64 levels are read; 65, 10,000 and a million levels are too deep', () => {
    expect(parseJson(nested(64)).canonical).toBe(nested(64));
    for (const depth of [65, 10_000, 1_000_000]) {
      expect(refusal(() => parseJson(nested(depth)))).toBe('too_deep');
      expect(refusal(() => parseJson('['.repeat(depth)))).toBe('too_deep');
      expect(refusal(() => parseJson('{"a":'.repeat(depth)))).toBe('too_deep');
    }
  });

  test('the depth limit counts nested levels, not neighbours', () => {
    const wide = `[${Array.from({ length: 1_000 }, () => '[[]]').join(',')}]`;
    expect(parseJson(wide, 3).canonical).toBe(wide);
    expect(refusal(() => parseJson(wide, 2))).toBe('too_deep');
    expect(refusal(() => parseJson('[]', 0))).toBe('too_deep');
  });

  test('the largest depth limit does not exhaust the stack, and a larger one is refused', () => {
    expect(toValue(parseJson('{"a":'.repeat(512).concat('1', '}'.repeat(512)), 512))).toBeTypeOf('object');
    expect(() => parseJson('1', 513)).toThrow(RangeError);
  });
});

describe('a request', () => {
  /** A list of so many values, itself included. */
  const listOf = (values: number) => `[${'0,'.repeat(values - 2)}0]`;

  test('may have as many values as the bound, and is not read beyond it, though its rest is no JSON', () => {
    const refused = { code: 'payload_too_large', details: { limit: requestValuesMax } };
    for (const read of [parseJsonField, (text: string) => parseJsonBody(Buffer.from(text))]) {
      expect(read(listOf(requestValuesMax)).kind).toBe('array');
      expect(() => read(`${listOf(requestValuesMax).slice(0, -1)},0,no JSON`)).toThrow(
        expect.objectContaining(refused),
      );
      expect(() => read(`[${'{"a":[]},'.repeat(requestValuesMax / 2)}`)).toThrow(expect.objectContaining(refused));
    }
  });

  test('has at most a value for each two bytes of its canonical form', () => {
    const valuesIn = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce((sum, one) => sum + valuesIn(one), 1)
        : 1;
    fc.assert(
      fc.property(fc.json({ maxDepth: 6, depthSize: 'large' }), (text) => {
        expect(valuesIn(JSON.parse(text))).toBeLessThanOrEqual((Buffer.byteLength(parseJson(text).canonical) + 1) / 2);
      }),
    );
  });

  test('is bounded in its values alone: other texts have as many as they like', () => {
    expect(parseJson(listOf(2 * requestValuesMax)).kind).toBe('array');
  });
});

function added(name: string, canonical: string): AddedMember {
  return { name, text: `${JSON.stringify(name)}:${canonical}` };
}

describe('objects and their members', () => {
  test('members are inserted into a payload in canonical order without a second parse', () => {
    const payload = parseJson('{"weight": 12.50, "carrier": "B", "\u{1f600}": []}') as JsonObject;
    const joined = withMembers(payload, [added('__proto__', '1'), added('scope', '"ORDER"')]);
    expect(joined).toBe('{"__proto__":1,"carrier":"B","scope":"ORDER","weight":12.5,"\u{1f600}":[]}');
    expect(parseJson(joined).canonical).toBe(joined);
  });

  test('an object without members is {}', () => {
    expect(withMembers(parseJson('{ }') as JsonObject, [])).toBe('{}');
  });

  test.each([
    ['that the object has', [added('a', '1')]],
    ['given twice', [added('c', '1'), added('c', '1')]],
    ['out of order', [added('d', '1'), added('c', '1')]],
  ])('a member %s is a TypeError', (_, members) => {
    expect(() => withMembers(parseJson('{"a":1,"b":2}') as JsonObject, members)).toThrow(TypeError);
  });

  test.each(['a', 'b', 'c', 'd', 'e'])('member %s is found among members in any order', (name) => {
    const object = parseJson('{"d":"d","a":"a","e":"e","c":"c","b":"b"}') as JsonObject;
    expect(memberOf(object, name)?.canonical).toBe(`"${name}"`);
    expect(memberOf(object, `${name}0`)).toBeUndefined();
    expect(memberOf(object, '')).toBeUndefined();
  });
});

describe('properties', () => {
  const value = fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 });

  test('the canonical text of a canonical text is itself', () => {
    fc.assert(
      fc.property(value, (any) => {
        const canonical = parseJson(JSON.stringify(any)).canonical;
        expect(parseJson(canonical).canonical).toBe(canonical);
      }),
    );
  });

  test('text and value agree with JSON.parse and an independent canonicalizer, whatever the white space', () => {
    fc.assert(
      fc.property(value, fc.constantFrom('', ' ', '\t', '\n'), (any, indent) => {
        const text = JSON.stringify(any, null, indent);
        const node = parseJson(text);
        expect(node.canonical).toBe(canonicalize(JSON.parse(text)));
        expect(toValue(node)).toEqual(JSON.parse(node.canonical));
      }),
    );
  });

  test('an object with inserted members equals an object that was written with them', () => {
    const object = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue());
    fc.assert(
      fc.property(object, object, (any, more) => {
        const node = parseJson(JSON.stringify(any)) as JsonObject;
        const members = (parseJson(JSON.stringify(more)) as JsonObject).members
          .filter(({ name }) => memberOf(node, name) === undefined)
          .map(({ name, value: { canonical } }) => added(name, canonical));
        expect(withMembers(node, members)).toBe(canonicalize({ ...more, ...any }));
      }),
    );
  });

  test('the canonical text of a part agrees with the canonicalizer, whether or not its source was canonical', () => {
    const otherwise = fc.constantFrom('1.0', '1e2', '"\\u0061"', '"\\/"', '[ ]', '{"b":1,"a":2}', '[1, 2]', '-0');
    const asIs = fc.constantFrom('1', '"a\\n"', '[]', '{"a":1,"b":[true]}', 'null', '"\u{1f600}"');
    fc.assert(
      fc.property(fc.array(fc.oneof(otherwise, asIs), { minLength: 1 }), (items) => {
        const text = `[${items.map((item) => `{"x":${item}}`).join(',')}]`;
        const node = parseJson(text);
        expect(node.canonical).toBe(canonicalize(JSON.parse(text)));
        if (node.kind !== 'array') throw new Error('an array was written');
        const parts = node.items.map(({ canonical }) => canonical);
        expect(parts).toEqual(items.map((item) => canonicalize({ x: JSON.parse(item) })));
      }),
    );
  });

  test('invalid_json is thrown only where JSON.parse throws, and every other refusal is a LedgerError', () => {
    const damaged = fc
      .tuple(
        value,
        fc.nat(),
        fc.constantFrom('', '"', '\\', ',', ':', '{', '}', '[', ']', '0', '-', 'e', '.', '\\u00', ' '),
      )
      .map(([any, place, piece]) => {
        const text = JSON.stringify(any);
        const at = place % text.length;
        return text.slice(0, at) + piece + text.slice(at + 1);
      });
    fc.assert(
      fc.property(
        fc.oneof(damaged, fc.string(), fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0 1e.-atrunlfs') })),
        (text) => {
          const isJson = refusesNothing(() => JSON.parse(text));
          const code = refusal(() => parseJson(text));
          if (!isJson)
            expect(code).toBeDefined(); // the first fault met, which may be another than the syntax
          else if (code === undefined) expect(parseJson(text).canonical).toBe(canonicalize(JSON.parse(text)));
          else expect(code).not.toBe('invalid_json');
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('random bytes throw nothing but a LedgerError', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => void refusal(() => parseJsonBytes(bytes))));
  });
});

function refusesNothing(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}
