import { LedgerError } from '../errors.ts';
import { loneSurrogate } from './canonical.ts';
import type { JsonNode, JsonObject } from './json-node.ts';
import { JsonReader } from './json-reader.ts';

export type { JsonNode, JsonObject } from './json-node.ts';
export { memberOf } from './json-node.ts';

/** I-JSON (RFC 7493), refused if the canonical form (RFC 8785) cannot state it as it was written. */

const DEPTH_MAX_DEFAULT = 64;
/** The reader recurses once a level, so the stack limits every `maxDepth`. */
const DEPTH_MAX_EVER = 512;

/**
 * Values of a request. Its largest field, a payload, has at most 256 KiB in canonical form, where each value takes two
 * bytes at least; 1,024 are for the other fields.
 */
export const requestValuesMax = (256 * 1024) / 2 + 1024;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Throws `invalid_json`, `duplicate_key`, `unsafe_number`, `invalid_string` or `too_deep`. The details have `offset`,
 * in UTF-16 code units, and `key` or `number` if there is one. RangeError for a bad `maxDepth`.
 *
 * `maxDepth`: how deeply objects and arrays may be nested, at most 512. The root counts as 1.
 * `maxValues`: of the whole text. Throws `payload_too_large` at the first value beyond it, and reads no further.
 */
export function parseJson(text: string, maxDepth = DEPTH_MAX_DEFAULT, maxValues = Number.POSITIVE_INFINITY): JsonNode {
  if (!(maxDepth >= 0 && maxDepth <= DEPTH_MAX_EVER)) throw new RangeError(`maxDepth must be 0 to ${DEPTH_MAX_EVER}`);
  // Checks the whole text once, so that only strings with escapes need a second check.
  if (!text.isWellFormed()) throw loneSurrogate(text.search(/\p{Surrogate}/u));
  return new JsonReader(text, maxDepth, maxValues).readAll();
}

/** A field of a request. Levels count from the root of the body, so that all transports refuse what REST refuses. */
export function parseJsonField(text: string): JsonNode {
  return parseJson(text, DEPTH_MAX_DEFAULT - 1, requestValuesMax);
}

/** The body of a request. See `parseJsonBytes`. */
export function parseJsonBody(bytes: Uint8Array): JsonNode {
  return parseJson(decodeUtf8(bytes), DEPTH_MAX_DEFAULT, requestValuesMax);
}

/** Whether the error of a request is that it has more values than `requestValuesMax`. */
export function isOfTooManyValues({ code, details }: LedgerError): boolean {
  return code === 'payload_too_large' && details.limit === requestValuesMax;
}

/** Throws `invalid_json` for invalid UTF-8 and a byte order mark (RFC 8259, section 8.1). */
export function parseJsonBytes(bytes: Uint8Array, maxDepth = DEPTH_MAX_DEFAULT): JsonNode {
  return parseJson(decodeUtf8(bytes), maxDepth);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new LedgerError('invalid_json', 'The JSON text is not valid UTF-8.', {}, cause);
  }
}

/** `__proto__` becomes an own member like any other. */
export function toValue(node: JsonNode): unknown {
  switch (node.kind) {
    case 'object': {
      const value: Record<string, unknown> = {};
      for (const member of node.members) setOwn(value, member.name, toValue(member.value));
      return value;
    }
    case 'array':
      return node.items.map(toValue);
    default:
      return node.value;
  }
}

function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

export interface AddedMember {
  readonly name: string;
  /** The canonical texts of its name and value, with a colon between them. */
  readonly text: string;
}

/**
 * The canonical text of an object with further members, without parsing it again. TypeError unless `added` is in
 * canonical order and has names that the object does not have.
 */
export function withMembers({ canonical, members }: JsonObject, added: readonly AddedMember[]): string {
  let text = '';
  /** How much of `canonical` was copied to `text`. `start` is where the next member begins in it. */
  let copied = 0;
  let start = 1;
  let at = 0;
  let before: string | null = null;
  const take = ({ name }: AddedMember): void => {
    if (before !== null && name <= before) throw misplaced(name);
    before = name;
    at += 1;
  };
  for (const { name, quoted, value } of members) {
    for (let next = added[at]; next !== undefined && next.name <= name; next = added[at]) {
      if (next.name === name) throw misplaced(name);
      take(next);
      text += `${canonical.slice(copied, start)}${next.text},`;
      copied = start;
    }
    start += quoted.length + value.canonical.length + 2;
  }
  const end = canonical.length - 1;
  let comma = members.length === 0 ? '' : ',';
  for (const next of added.slice(at)) {
    take(next);
    text += `${canonical.slice(copied, end)}${comma}${next.text}`;
    copied = end;
    comma = ',';
  }
  return text + canonical.slice(copied);
}

function misplaced(name: string): TypeError {
  return new TypeError(`Member ${name} was given twice, or out of order`);
}
