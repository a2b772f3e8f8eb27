import { byCodeUnits, exactNumber, loneSurrogate } from './canonical.ts';
import { LedgerError } from './errors.ts';
import type {
  JsonArray,
  JsonBoolean,
  JsonMember,
  JsonNode,
  JsonNull,
  JsonNumber,
  JsonObject,
  JsonString,
} from './json-node.ts';

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

/** A string that was written without escapes. Most are never asked for their value. */
class PlainString implements JsonString {
  readonly kind = 'string';
  readonly canonical: string;

  constructor(canonical: string) {
    this.canonical = canonical;
  }

  get value(): string {
    return this.canonical.slice(1, -1);
  }
}

/**
 * A cursor on one well-formed text (the caller has looked for lone surrogates). Every read… method starts at the first character of its thing and ends behind its
 * last. One level of nesting is one level of the stack: `maxDepth` bounds both.
 */
export class JsonReader {
  readonly #text: string;
  readonly #maxDepth: number;
  #at = 0;
  /** How often the canonical form turned out to be another than what was written: where that is never, it is a piece of the text. */
  #changes = 0;

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
        if (at !== this.#at) {
          this.#at = at;
          this.#changes += 1;
        }
        return code;
      }
    }
    this.#at = text.length;
    return END;
  }

  #readValue(code: number, depth: number): JsonNode {
    if (code === QUOTE) return this.#readString();
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
    const { start, changes } = this.#enter(depth);
    const members: JsonMember[] = [];
    if (this.#next() === CLOSE_BRACE) {
      this.#at += 1;
      return { kind: 'object', canonical: '{}', members };
    }
    let last: JsonMember | null = null;
    let inOrder = true;
    for (;;) {
      if (this.#next() !== QUOTE) throw this.#unexpected('a member name in double quotes');
      const offset = this.#at;
      const { canonical: quoted, value: name } = this.#readString();
      if (this.#next() !== COLON) throw this.#unexpected('a colon');
      this.#at += 1;
      const member: JsonMember = { name, quoted, offset, value: this.#readValue(this.#next(), depth) };
      inOrder &&= last === null || last.name < name;
      members.push(member);
      last = member;
      const code = this.#next();
      if (code !== COMMA && code !== CLOSE_BRACE) throw this.#unexpected('a comma or the end of the object');
      this.#at += 1;
      if (code === CLOSE_BRACE) break;
    }
    if (!inOrder) {
      this.#changes += 1;
      sortMembers(members);
    }
    const canonical = this.#changes === changes ? this.#text.slice(start, this.#at) : joinMembers(members);
    return { kind: 'object', canonical, members };
  }

  #readArray(depth: number): JsonArray {
    const { start, changes } = this.#enter(depth);
    const items: JsonNode[] = [];
    if (this.#next() === CLOSE_BRACKET) {
      this.#at += 1;
      return { kind: 'array', canonical: '[]', items };
    }
    for (;;) {
      items.push(this.#readValue(this.#next(), depth));
      const code = this.#next();
      if (code !== COMMA && code !== CLOSE_BRACKET) throw this.#unexpected('a comma or the end of the array');
      this.#at += 1;
      if (code === CLOSE_BRACKET) break;
    }
    const canonical = this.#changes === changes ? this.#text.slice(start, this.#at) : joinItems(items);
    return { kind: 'array', canonical, items };
  }

  /** Goes into an object or array: where it starts, and how many changes there were before it. */
  #enter(depth: number): { readonly start: number; readonly changes: number } {
    const start = this.#at;
    if (depth > this.#maxDepth) {
      throw new LedgerError('too_deep', `Objects and arrays may be nested ${this.#maxDepth} deep at most.`, {
        limit: this.#maxDepth,
        offset: start,
      });
    }
    this.#at = start + 1;
    return { start, changes: this.#changes };
  }

  #readString(): JsonString {
    const text = this.#text;
    const start = this.#at;
    for (let at = start + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return new PlainString(text.slice(start, at + 1));
      }
      if (code === BACKSLASH) return this.#readEscaped(start, at);
      if (code < 0x20) throw this.#controlCharacter(at);
    }
    throw this.#unterminated();
  }

  /** The string from the quote at `start`, whose first escape is at `firstEscape`. */
  #readEscaped(start: number, firstEscape: number): JsonString {
    const text = this.#text;
    let value = '';
    let copied = start + 1;
    let at = firstEscape;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        value += text.slice(copied, at);
        this.#at = at + 1;
        if (!value.isWellFormed()) throw loneSurrogate(start);
        const canonical = JSON.stringify(value);
        if (canonical !== text.slice(start, at + 1)) this.#changes += 1;
        return { kind: 'string', canonical, value };
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
    const canonical = String(value);
    if (canonical !== token) this.#changes += 1;
    return { kind: 'number', canonical, value };
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

/** Puts members into canonical order. `duplicate_key` where two have the same name. */
function sortMembers(members: JsonMember[]): void {
  members.sort((left, right) => byCodeUnits(left.name, right.name));
  for (let at = 1; at < members.length; at += 1) {
    const [before, member] = [members[at - 1], members[at]];
    if (before !== undefined && member !== undefined && before.name === member.name) {
      throw duplicateKey(member.name, Math.max(before.offset, member.offset));
    }
  }
}

function joinMembers(members: readonly JsonMember[]): string {
  let canonical = '{';
  for (let at = 0; at < members.length; at += 1) {
    const { quoted, value } = members[at] as JsonMember;
    canonical += at === 0 ? `${quoted}:${value.canonical}` : `,${quoted}:${value.canonical}`;
  }
  return `${canonical}}`;
}

function joinItems(items: readonly JsonNode[]): string {
  let canonical = '[';
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at] as JsonNode;
    canonical += at === 0 ? item.canonical : `,${item.canonical}`;
  }
  return `${canonical}]`;
}

function invalidJson(what: string, offset: number): LedgerError {
  return new LedgerError('invalid_json', `${what}.`, { offset });
}

function duplicateKey(key: string, offset: number): LedgerError {
  return new LedgerError('duplicate_key', 'An object has two members of the same name.', { key, offset });
}
