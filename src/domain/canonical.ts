import { LedgerError } from './errors.ts';

/**
 * The canonical texts of RFC 8785 (JCS): of strings, numbers and whole JavaScript values, and which written numbers may
 * stand for the number that they are read as (decisions.md, section 3).
 */

/** Deeper values are taken for circular ones. Far above what any transport lets in (64), and far below the stack. */
const VALUE_DEPTH_MAX = 1_000;

/** A decimal number of at most this many digits is read as a double near enough to be meant by nothing else. */
const FRACTION_DIGITS_MAX = 17;

/** How much of a refused number is repeated to the caller, in characters. */
const SHOWN_NUMBER_MAX_CHARS = 64;

/** Orders texts by UTF-16 code units (RFC 8785, section 3.2.3). */
export function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * The canonical text of a string, quotes included (RFC 8785, section 3.2.2.2).
 * Refuses lone surrogates (`invalid_string`): they have no UTF-8 form and would be changed on their way.
 */
export function canonicalString(value: string): string {
  if (!value.isWellFormed()) throw loneSurrogate();
  return JSON.stringify(value);
}

/** `invalid_string` for a lone surrogate; `offset` counts UTF-16 code units of the text that was read. */
export function loneSurrogate(offset?: number): LedgerError {
  return new LedgerError(
    'invalid_string',
    'A string holds half of a surrogate pair, which is no character.',
    offset === undefined ? {} : { offset },
  );
}

/** The canonical text of a finite number (RFC 8785, section 3.2.2.3); -0 is `0`. TypeError for NaN and infinities. */
export function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON number`);
  return String(value);
}

/**
 * Reads a number as JSON writes it (the grammar was checked by the caller) and never changes it silently: refuses
 * (`unsafe_number`) what overflows, what underflows to 0, and what the canonical form would state as another value, except
 * fractions of at most 17 significant digits, which are how doubles are written. decisions.md, section 3.
 */
export function exactNumber(token: string, offset: number): number {
  const value = Number(token);
  const canonical = String(value);
  if (canonical === token) return value;
  if (!Number.isFinite(value)) throw unsafeNumber(token, offset, 'is too large');
  const written = decimalOf(token);
  if (written.digits === '') return 0;
  if (value === 0) throw unsafeNumber(token, offset, 'is too close to 0');
  const isFraction = written.exponent < 0;
  if (isFraction && written.digits.length <= FRACTION_DIGITS_MAX) return value;
  const kept = decimalOf(canonical);
  if (kept.digits === written.digits && kept.exponent === written.exponent) return value;
  throw unsafeNumber(token, offset, `would become ${canonical}`);
}

/** The value `digits` × 10^`exponent`, sign aside. No zero at either end of the digits; no digits at all for 0. */
interface Decimal {
  readonly digits: string;
  readonly exponent: number;
}

function decimalOf(token: string): Decimal {
  const [mantissa = '', exponent = '0'] = (token.startsWith('-') ? token.slice(1) : token).split(/[eE]/);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = whole + fraction;
  const end = endOfNonZero(all);
  return {
    digits: all.slice(firstNonZero(all), end),
    exponent: Number(exponent) - fraction.length + (all.length - end),
  };
}

function firstNonZero(digits: string): number {
  let at = 0;
  while (at < digits.length && digits.charCodeAt(at) === 0x30) at += 1;
  return at;
}

function endOfNonZero(digits: string): number {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 0x30) end -= 1;
  return end;
}

function unsafeNumber(token: string, offset: number, why: string): LedgerError {
  const number = token.length > SHOWN_NUMBER_MAX_CHARS ? `${token.slice(0, SHOWN_NUMBER_MAX_CHARS)}…` : token;
  return new LedgerError('unsafe_number', `The number ${number} ${why}; send it as a string to keep it as it is.`, {
    number,
    offset,
  });
}

/**
 * The canonical text of a JavaScript value (RFC 8785): null, booleans, finite numbers, well-formed strings, arrays
 * without holes, and plain objects of these. All own enumerable members count, `__proto__` and `toJSON` too.
 * Refuses what JSON cannot say: TypeError, or `invalid_string` for a lone surrogate.
 */
export function canonicalJson(value: unknown): string {
  return textOf(value, 0);
}

function textOf(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return canonicalString(value);
    case 'number':
      return canonicalNumber(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (depth >= VALUE_DEPTH_MAX) throw new TypeError('The value is circular or nested too deeply for JSON');
      return Array.isArray(value) ? arrayText(value, depth + 1) : objectText(value, depth + 1);
    default:
      throw new TypeError(`JSON cannot say ${typeof value}`);
  }
}

function arrayText(items: readonly unknown[], depth: number): string {
  let text = '[';
  // By index and not by forEach, which would pass over holes; a hole reads as undefined and is refused.
  for (let at = 0; at < items.length; at += 1) text += (at === 0 ? '' : ',') + textOf(items[at], depth);
  return `${text}]`;
}

function objectText(value: object, depth: number): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) throw new TypeError('JSON cannot say an object of a class');
  const members = value as Readonly<Record<string, unknown>>;
  let text = '{';
  for (const key of Object.keys(members).sort(byCodeUnits)) {
    text += `${text === '{' ? '' : ','}${canonicalString(key)}:${textOf(members[key], depth)}`;
  }
  return `${text}}`;
}
