import { LedgerError, refusedValue } from '../errors.ts';
import { sha256HexForm } from '../keys/hash.ts';
import { parseSvcUri } from './svc-uri.ts';
import { fractionDigitsMax, parseRfc3339, rfc3339Form } from './time.ts';
import { isUuid } from './uuid-form.ts';

/**
 * Every check returns the typed value, or throws `invalid_argument` with the name of the field. A value that is absent
 * is told to be missing.
 */

export const SERVICE_EVENT_TYPES = [
  'GENESIS',
  'ORDER_OPENED',
  'LEDGER_CLOSED',
  'ORGANIZATION_REGISTERED',
  'TRACELEDGER_MASTER_CREATED',
  'MASTER_CLOSED',
  'SUPPLIER_DELEGATION_GRANTED',
  'SUPPLIER_DELEGATION_REVOKED',
  'LEDGER_DELEGATION_GRANTED',
  'LEDGER_DELEGATION_REVOKED',
  'MASTER_DELEGATION_GRANTED',
  'MASTER_DELEGATION_REVOKED',
] as const;

/** The type of test deliveries, which stand in no ledger. */
const PING = 'PING';
/** Those of the service, the type of test deliveries, and types that one version keeps for the next. */
const RESERVED_EVENT_TYPES: ReadonlySet<string> = new Set([...SERVICE_EVENT_TYPES, PING]);

/**
 * The exported forms are patterns of the OpenAPI document too. So they use only what regular expressions of all
 * languages share: ASCII, no `\p{...}`, no flags.
 */
export const eventTypeForm = /^[A-Za-z][A-Za-z0-9_.:-]{0,127}$/;
/** For `scope`, `role`, `purpose` and `entity_type`. */
export const labelForm = /^[A-Za-z][A-Za-z0-9_ -]{0,63}$/;
/** Items of a delivery chain (X-Delivery-Chain). */
export const deliveryChainItemsMax = 16;
/** The form of ISO 3166-1. */
export const countryForm = /^[A-Z]{2}$/;
/** No control characters (Unicode's category Cc). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about control characters
export const nameForm = /^[^\x00-\x1f\x7f-\x9f]+$/;
export const nameMaxChars = 256;
/** http or https, a host, and no user info, white space, control characters or backslashes. */
export const urlForm =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about control characters
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#@\\\s\x00-\x1f\x7f-\x9f]+([/?#][^\\\s\x00-\x1f\x7f-\x9f]*)?$/;
export const urlMaxChars = 2_048;
const LIST_LIMIT_MAX = 1_000;
const LIST_LIMIT_DEFAULT = 20;
export const listOffsetMax = 100_000;

/** The longest address that SMTP can carry (RFC 5321, section 4.5.3.1.3, without the brackets). */
export const emailMaxChars = 254;
/** A local part, an at sign, and the labels of a host name; letters of any script (RFC 6531). */
const EMAIL =
  /^[^\s\p{Cc}"(),:;<>@[\\\]]{1,64}@[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?(?:\.[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?)*$/u;

/** May be one of the service's own (filters of lists and subscriptions). */
export function checkEventType(field: string, value: unknown): string {
  return matching(field, value, eventTypeForm, 'a letter and up to 127 letters, digits or _ . : -');
}

/** Whether events of this type can stand in a ledger. */
export function isRecordedEventType(text: string): boolean {
  return eventTypeForm.test(text) && text !== PING;
}

/** Throws `reserved_event_type` for a reserved type. */
export function checkCallerEventType(field: string, value: unknown): string {
  const eventType = checkEventType(field, value);
  if (!RESERVED_EVENT_TYPES.has(eventType)) return eventType;
  throw new LedgerError('reserved_event_type', `The event type ${eventType} is reserved: callers cannot append it.`, {
    field,
    event_type: eventType,
  });
}

/** Free text: 1 to 256 characters (code points) of any script, no control characters. */
export function checkName(field: string, value: unknown): string {
  if (isName(value)) return value;
  throw refusedValue(field, value, `1 to ${nameMaxChars} characters, none of them a control character`);
}

export function isName(value: unknown): value is string {
  if (typeof value !== 'string' || !value.isWellFormed()) return false;
  return !charactersExceed(value, nameMaxChars) && nameForm.test(value);
}

export function checkLabel(field: string, value: unknown): string {
  if (isLabel(value)) return value;
  throw refusedValue(field, value, 'a letter and up to 63 letters, digits, spaces or _ -');
}

export function isLabel(value: unknown): value is string {
  return typeof value === 'string' && labelForm.test(value);
}

/** The service keeps no list of countries. */
export function checkCountry(field: string, value: unknown): string {
  return matching(field, value, countryForm, 'two capital letters');
}

/** Only the form: whether the address exists is not checked. */
export function checkEmail(field: string, value: unknown): string {
  if (typeof value === 'string' && value.length > emailMaxChars) {
    throw refusedValue(field, value, `at most ${emailMaxChars} characters`);
  }
  return matching(field, value, EMAIL, 'an e-mail address');
}

/**
 * White space and backslashes are refused, because a parser would silently drop or change them. Whether a webhook may
 * be sent there is checked elsewhere (docs/security.md, "Where webhooks go").
 */
export function checkUrl(field: string, value: unknown): string {
  const expected = `an http or https URL of at most ${urlMaxChars} characters, without user info`;
  if (typeof value !== 'string' || value.length > urlMaxChars || !urlForm.test(value) || !URL.canParse(value)) {
    throw refusedValue(field, value, expected);
  }
  return value;
}

export function checkUuid(field: string, value: unknown): string {
  if (typeof value !== 'string' || !isUuid(value)) throw refusedValue(field, value, 'a UUID in lower case');
  return value;
}

/** A field named `…_svc_id`. Returns the actor id of the URI. */
export function checkActorUri(field: string, value: unknown): string {
  const uri = typeof value === 'string' ? parseSvcUri(value) : null;
  if (uri?.kind !== 'actor') throw refusedValue(field, value, 'an actor URI, svc:actor:<uuid>, in lower case');
  return uri.actorId;
}

export function checkHash(field: string, value: unknown): string {
  return matching(field, value, sha256HexForm, '64 lower-case hex digits');
}

/** Returns milliseconds since 1970. */
export function checkTime(field: string, value: unknown): number {
  const timeMs = typeof value === 'string' && rfc3339Form.test(value) ? parseRfc3339(value) : null;
  if (timeMs !== null) return timeMs;
  const digits = `at most ${fractionDigitsMax} digits behind the point`;
  throw refusedValue(field, value, `an RFC 3339 time such as 2026-11-21T02:06:39Z, with ${digits}`);
}

/** The `limit` of a list: 1 to 1,000; 20 if left out. */
export function checkLimit(field: string, value: unknown): number {
  return value === undefined ? LIST_LIMIT_DEFAULT : integer(field, value, 1, LIST_LIMIT_MAX);
}

/** The `offset` of a list: 0 to 100,000; 0 if left out. */
export function checkOffset(field: string, value: unknown): number {
  return value === undefined ? 0 : integer(field, value, 0, listOffsetMax);
}

/** A 64-bit integer of at least `min`. */
export function checkCount(field: string, value: unknown, min: 0 | 1): number {
  if (typeof value === 'bigint' && value >= BigInt(min) && value <= BigInt(Number.MAX_SAFE_INTEGER))
    return Number(value);
  throw refusedValue(field, value, `an integer from ${min}`);
}

function integer(field: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw refusedValue(field, value, `an integer from ${min} to ${max}`);
}

function matching(field: string, value: unknown, form: RegExp, expected: string): string {
  if (typeof value === 'string' && form.test(value)) return value;
  throw refusedValue(field, value, expected);
}

/** Whether the text has more than `max` code points. Does not count them if the text is far too long. */
function charactersExceed(text: string, max: number): boolean {
  return text.length > 2 * max || (text.length > max && [...text].length > max);
}
