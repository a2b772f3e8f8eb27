import { LedgerError } from '../errors.ts';

/** RFC 8785 (JCS), and which written numbers may stand for the double that they are read as. */

/** Deeper values are refused as circular. Far above the depth that transports accept (64), far below the stack. */
const VALUE_DEPTH_MAX = 1_000;

/** Fractions of at most this many digits may differ a little from their double. */
const FRACTION_DIGITS_MAX = 17;

const SHOWN_NUMBER_MAX_CHARS = 64;

/** Orders texts by UTF-16 code units (RFC 8785, section 3.2.3). */
export function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** RFC 8785, section 3.2.2.2, with quotes. Throws `invalid_string` for lone surrogates: they have no UTF-8 form. */
export function canonicalString(value: string): string {
  if (!value.isWellFormed()) throw loneSurrogate();
  return JSON.stringify(value);
}

/** `offset` counts UTF-16 code units of the text that was read. */
export function loneSurrogate(offset?: number): LedgerError {
  return new LedgerError(
    'invalid_string',
    'A string holds half of a surrogate pair, which is no character.',
    offset === undefined ? {} : { offset },
  );
}

/** RFC 8785, section 3.2.2.3. -0 is `0`. TypeError for NaN and infinities. */
export function canonicalNumber(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`${value} is no JSON number`);
  return String(value);
}

/**
 * Reads a number whose grammar the caller has checked. A number is never changed silently: throws `unsafe_number` for a
 * number that overflows, underflows to 0, or would get another value in canonical form. One exception: fractions of at
 * most 17 significant digits may be rounded, because doubles are written with that many. `offset` is for the error.
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

/** `digits` × 10^`exponent`, without its sign. The digits have no zeros at either end, none for 0. */
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
 * The canonical text (RFC 8785) of null, booleans, finite numbers, well-formed strings, arrays without holes, and plain
 * objects of these. All own enumerable members count, also `__proto__` and `toJSON`. TypeError for any other value;
 * `invalid_string` for a lone surrogate.
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
  // By index: forEach would skip holes. A hole reads as undefined and is refused.
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
