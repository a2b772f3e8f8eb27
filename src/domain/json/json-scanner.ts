import { LedgerError } from '../errors.ts';
import { exactNumber, loneSurrogate } from './canonical.ts';
import type { JsonNumber, JsonString } from './json-node.ts';

/** Every integer of at most this many digits is exact as a double. */
const EXACT_INTEGER_DIGITS = 15;

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
export const END = -1;

/** The value is computed on demand, because most values are never read. */
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
 * A cursor on one text without lone surrogates. Reads what does not nest: words, strings and numbers. Every read…
 * method starts at the first character of its token and ends behind the last one.
 */
export class JsonScanner {
  protected readonly text: string;
  protected at = 0;
  /** Counts where the canonical form differs. If it did not grow over a value, the canonical text is a slice. */
  protected changes = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Skips white space. Returns the next character code, or END. */
  protected next(): number {
    const text = this.text;
    for (let at = this.at; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) {
        if (at !== this.at) {
          this.at = at;
          this.changes += 1;
        }
        return code;
      }
    }
    this.at = text.length;
    return END;
  }

  protected readWord(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  protected readString(): JsonString {
    const text = this.text;
    const start = this.at;
    for (let at = start + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.at = at + 1;
        return new PlainString(text.slice(start, at + 1));
      }
      if (code === BACKSLASH) return this.#readEscaped(start, at);
      if (code < 0x20) throw this.#controlCharacter(at);
    }
    throw this.#unterminated();
  }

  /** The opening quote is at `start`, the first escape at `firstEscape`. */
  #readEscaped(start: number, firstEscape: number): JsonString {
    const text = this.text;
    let value = '';
    let copied = start + 1;
    let at = firstEscape;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        value += text.slice(copied, at);
        this.at = at + 1;
        if (!value.isWellFormed()) throw loneSurrogate(start);
        const canonical = JSON.stringify(value);
        if (canonical !== text.slice(start, at + 1)) this.changes += 1;
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
    const letter = this.text.charAt(at + 1);
    const plain = ESCAPES.get(letter);
    if (plain !== undefined) return plain;
    const digits = this.text.slice(at + 2, at + 6);
    if (letter === 'u' && /^[0-9A-Fa-f]{4}$/.test(digits)) return String.fromCharCode(Number.parseInt(digits, 16));
    throw invalidJson('A string holds an escape that JSON does not have', at);
  }

  protected readNumber(): JsonNumber {
    const text = this.text;
    const start = this.at;
    const wholeAt = text.charCodeAt(start) === MINUS ? start + 1 : start;
    let at = this.#pastDigits(wholeAt);
    if (text.charCodeAt(wholeAt) === DIGIT_0 && at > wholeAt + 1) at = wholeAt + 1; // 01 is a 0 and a second token
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
    this.at = at;
    const token = text.slice(start, at);
    if (isPlain && at - wholeAt <= EXACT_INTEGER_DIGITS && token !== '-0') {
      return { kind: 'number', canonical: token, value: Number(token) };
    }
    const value = exactNumber(token, start);
    const canonical = String(value);
    if (canonical !== token) this.changes += 1;
    return { kind: 'number', canonical, value };
  }

  /** Throws if there are no digits. */
  #pastDigits(at: number): number {
    let end = at;
    while (isDigit(this.text.charCodeAt(end))) end += 1;
    if (end > at) return end;
    this.at = at;
    throw this.unexpected('a digit');
  }

  protected unexpected(expected: string): LedgerError {
    const found = this.at < this.text.length ? 'something else' : 'the end';
    return new LedgerError('invalid_json', `The JSON text has ${found} where ${expected} should be.`, {
      expected,
      offset: this.at,
    });
  }

  #controlCharacter(at: number): LedgerError {
    return invalidJson('A string holds a control character that is not escaped', at);
  }

  #unterminated(): LedgerError {
    return invalidJson('A string has no closing quote', this.at);
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

export function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_9;
}

function invalidJson(what: string, offset: number): LedgerError {
  return new LedgerError('invalid_json', `${what}.`, { offset });
}
