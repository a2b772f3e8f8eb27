import { byCodeUnits, exactNumber, loneSurrogate } from './canonical.ts';
import { LedgerError } from './errors.ts';
import type { JsonArray, JsonBoolean, JsonNode, JsonNull, JsonNumber, JsonObject } from './json-node.ts';

/** Any integer of this many digits is a double. */
const EXACT_INTEGER_DIGITS = 15;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const END = -1;

const TRUE: JsonBoolean = { kind: 'boolean', canonical: 'true', value: true };
const FALSE: JsonBoolean = { kind: 'boolean', canonical: 'false', value: false };
const NULL: JsonNull = { kind: 'null', canonical: 'null', value: null };

/**
 * A cursor on one well-formed text (the caller has looked for lone surrogates). Every read… method starts at the first character of its thing and ends behind its
 * last. One level of nesting is one level of the stack: `maxDepth` bounds both.
 */
export class JsonReader {
  readonly #text: string;
  readonly #maxDepth: number;
  #at = 0;
  /** The canonical text of the string that was read last. */
  #quoted = '';

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  readAll(): JsonNode {
    const node = this.#readValue(this.#next(), 0);
    if (this.#next() !== END) throw this.#unexpected('the end of the JSON text');
    return node;
  }

  /** Skips white space; the character code that follows, END behind the last. */
  #next(): number {
    const text = this.#text;
    for (let at = this.#at; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) {
        this.#at = at;
        return code;
      }
    }
    this.#at = text.length;
    return END;
  }

  #readValue(code: number, depth: number): JsonNode {
    if (code === QUOTE) {
      const value = this.#readString();
      return { kind: 'string', canonical: this.#quoted, value };
    }
    if (code === OPEN_BRACE) return this.#readObject(depth + 1);
    if (code === OPEN_BRACKET) return this.#readArray(depth + 1);
    if (code === MINUS || isDigit(code)) return this.#readNumber();
    if (this.#readWord('true')) return TRUE;
    if (this.#readWord('false')) return FALSE;
    if (this.#readWord('null')) return NULL;
    throw this.#unexpected('a value');
  }

  #readWord(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #readObject(depth: number): JsonObject {
    this.#enter(depth);
    const members = new Map<string, JsonNode>();
    if (this.#next() === CLOSE_BRACE) {
      this.#at += 1;
      return { kind: 'object', canonical: '{}', members };
    }
    const keys: string[] = [];
    const texts: string[] = [];
    let inOrder = true;
    for (;;) {
      if (this.#next() !== QUOTE) throw this.#unexpected('a member name in double quotes');
      const keyAt = this.#at;
      const key = this.#readString();
      const quotedKey = this.#quoted;
      if (this.#next() !== COLON) throw this.#unexpected('a colon');
      this.#at += 1;
      const value = this.#readValue(this.#next(), depth);
      members.set(key, value);
      if (members.size === keys.length) throw duplicateKey(key, keyAt);
      inOrder &&= keys.length === 0 || (keys[keys.length - 1] as string) < key;
      keys.push(key);
      texts.push(`${quotedKey}:${value.canonical}`);
      const code = this.#next();
      if (code !== COMMA && code !== CLOSE_BRACE) throw this.#unexpected('a comma or the end of the object');
      this.#at += 1;
      if (code === CLOSE_BRACE) {
        return { kind: 'object', canonical: braced(inOrder ? texts : sortedBy(keys, texts)), members };
      }
    }
  }

  #readArray(depth: number): JsonArray {
    this.#enter(depth);
    const items: JsonNode[] = [];
    if (this.#next() === CLOSE_BRACKET) {
      this.#at += 1;
      return { kind: 'array', canonical: '[]', items };
    }
    let canonical = '[';
    for (;;) {
      const item = this.#readValue(this.#next(), depth);
      items.push(item);
      canonical += item.canonical;
      const code = this.#next();
      if (code !== COMMA && code !== CLOSE_BRACKET) throw this.#unexpected('a comma or the end of the array');
      this.#at += 1;
      if (code === CLOSE_BRACKET) return { kind: 'array', canonical: `${canonical}]`, items };
      canonical += ',';
    }
  }

  #enter(depth: number): void {
    if (depth > this.#maxDepth) {
      throw new LedgerError('too_deep', `Objects and arrays may be nested ${this.#maxDepth} deep at most.`, {
        limit: this.#maxDepth,
        offset: this.#at,
      });
    }
    this.#at += 1;
  }

  #readString(): string {
    const text = this.#text;
    const start = this.#at + 1;
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        this.#quoted = text.slice(start - 1, at + 1);
        return text.slice(start, at);
      }
      if (code === BACKSLASH) return this.#readEscaped(start, at);
      if (code < 0x20) throw this.#controlCharacter(at);
    }
    throw this.#unterminated();
  }

  /** The string from `start`, whose first escape is at `at`. */
  #readEscaped(start: number, firstEscape: number): string {
    const text = this.#text;
    let value = '';
    let copied = start;
    let at = firstEscape;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        value += text.slice(copied, at);
        this.#at = at + 1;
        if (!value.isWellFormed()) throw loneSurrogate(start - 1);
        this.#quoted = JSON.stringify(value);
        return value;
      }
      if (code === BACKSLASH) {
        value += text.slice(copied, at) + this.#escaped(at);
        at += text.charCodeAt(at + 1) === 0x75 ? 6 : 2;
        copied = at;
      } else {
        if (code < 0x20) throw this.#controlCharacter(at);
        at += 1;
      }
    }
    throw this.#unterminated();
  }

  #escaped(at: number): string {
    const letter = this.#text.charAt(at + 1);
    const plain = ESCAPES.get(letter);
    if (plain !== undefined) return plain;
    const digits = this.#text.slice(at + 2, at + 6);
    if (letter === 'u' && /^[0-9A-Fa-f]{4}$/.test(digits)) return String.fromCharCode(Number.parseInt(digits, 16));
    throw invalidJson('A string holds an escape that JSON does not have', at);
  }

  #readNumber(): JsonNumber {
    const text = this.#text;
    const start = this.#at;
    const wholeAt = text.charCodeAt(start) === MINUS ? start + 1 : start;
    let at = this.#pastDigits(wholeAt);
    if (text.charCodeAt(wholeAt) === DIGIT_0 && at > wholeAt + 1) at = wholeAt + 1; // 01 is a 0 and something else
    let code = text.charCodeAt(at);
    const isPlain = code !== DOT && code !== 0x65 && code !== 0x45;
    if (code === DOT) {
      at = this.#pastDigits(at + 1);
      code = text.charCodeAt(at);
    }
    if (code === 0x65 || code === 0x45) {
      const sign = text.charCodeAt(at + 1);
      at = this.#pastDigits(sign === PLUS || sign === MINUS ? at + 2 : at + 1);
    }
    this.#at = at;
    const token = text.slice(start, at);
    if (isPlain && at - wholeAt <= EXACT_INTEGER_DIGITS && token !== '-0') {
      return { kind: 'number', canonical: token, value: Number(token) };
    }
    const value = exactNumber(token, start);
    return { kind: 'number', canonical: String(value), value };
  }

  /** Where the digits from `at` end; there must be one at least. */
  #pastDigits(at: number): number {
    let end = at;
    while (isDigit(this.#text.charCodeAt(end))) end += 1;
    if (end > at) return end;
    this.#at = at;
    throw this.#unexpected('a digit');
  }

  #unexpected(expected: string): LedgerError {
    const found = this.#at < this.#text.length ? 'something else' : 'the end';
    return new LedgerError('invalid_json', `The JSON text has ${found} where ${expected} should be.`, {
      expected,
      offset: this.#at,
    });
  }

  #controlCharacter(at: number): LedgerError {
    return invalidJson('A string holds a control character that is not escaped', at);
  }

  #unterminated(): LedgerError {
    return invalidJson('A string has no closing quote', this.#at);
  }
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_9;
}

/** `texts` in the order of their keys. */
function sortedBy(keys: readonly string[], texts: readonly string[]): readonly string[] {
  const order = keys.map((_, index) => index);
  order.sort((left, right) => byCodeUnits(keys[left] as string, keys[right] as string));
  return order.map((index) => texts[index] as string);
}

function braced(texts: readonly string[]): string {
  let canonical = `{${texts[0] ?? ''}`;
  for (let at = 1; at < texts.length; at += 1) canonical += `,${texts[at]}`;
  return `${canonical}}`;
}

function invalidJson(what: string, offset: number): LedgerError {
  return new LedgerError('invalid_json', `${what}.`, { offset });
}

function duplicateKey(key: string, offset: number): LedgerError {
  return new LedgerError('duplicate_key', 'An object has two members of the same name.', { key, offset });
}
