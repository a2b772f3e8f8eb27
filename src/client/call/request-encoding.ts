import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { canonicalJson } from '../../domain/json/canonical.ts';
import type { RestPlace } from '../endpoint.ts';
import { isJsonText } from '../shapes.ts';

/** An unchecked request with the client's field names. */
export type RequestFields = { readonly [name: string]: unknown };

/**
 * The fields of a request that are given, by their descriptors. null and undefined count as left out. Throws TypeError
 * for an unknown name, so that a misspelt field does not get lost, and for a value of another type.
 */
export function givenFields(desc: DescMessage, request: RequestFields): ReadonlyMap<DescField, unknown> {
  const byName = new Map(desc.fields.map((field) => [field.localName, field]));
  const given = new Map<DescField, unknown>();
  for (const [name, value] of Object.entries(request)) {
    const field = byName.get(name);
    if (field === undefined) throw new TypeError(`${desc.name} has no field ${name}`);
    if (value !== undefined && value !== null) given.set(field, checked(field, value));
  }
  return given;
}

/** The value as the generated message holds it: JSON as text, 64-bit integers as bigint. */
function checked(field: DescField, value: unknown): unknown {
  const wrong = (expected: string) => new TypeError(`${field.localName} must be ${expected}`);
  if (field.fieldKind === 'list') {
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) throw wrong('a list of strings');
    return value;
  }
  if (field.fieldKind !== 'scalar') throw wrong('left to the service');
  if (isJsonText(field)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong('a JSON object');
    return canonicalJson(value);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      if (typeof value !== 'string') throw wrong('a string');
      return value;
    case ScalarType.BOOL:
      if (typeof value !== 'boolean') throw wrong('true or false');
      return value;
    case ScalarType.INT64:
      if (!Number.isSafeInteger(value)) throw wrong('a whole number');
      return BigInt(value as number);
    default:
      if (!Number.isSafeInteger(value)) throw wrong('a whole number');
      return value;
  }
}

/** The generated message's initial values, for gRPC. */
export function messageInit(given: ReadonlyMap<DescField, unknown>): Record<string, unknown> {
  return Object.fromEntries([...given].map(([field, value]) => [field.localName, value]));
}

/** The JSON body: those of `fields` that are given. Returns null if none is. */
export function jsonBody(fields: readonly DescField[], given: ReadonlyMap<DescField, unknown>): string | null {
  const members = fields.flatMap((field) => {
    const value = given.get(field);
    if (value === undefined) return [];
    const text = isJsonText(field) || typeof value === 'bigint' ? String(value) : JSON.stringify(value);
    return [`${JSON.stringify(field.name)}:${text}`];
  });
  return members.length === 0 ? null : `{${members.join(',')}}`;
}

/**
 * The path of a call, with the fields that are in neither path nor body as query. Throws TypeError for unusable fields.
 */
export function pathAndQuery(rest: RestPlace, given: ReadonlyMap<DescField, unknown>): string {
  let path = rest.template;
  for (const field of rest.pathFields) {
    const value = given.get(field);
    // An empty segment makes another path, and URL parsers resolve `.` and `..` away.
    if (value === undefined || value === '' || value === '.' || value === '..') {
      throw new TypeError(`${field.localName} must be given`);
    }
    path = path.replace(`{${field.name}}`, encodeURIComponent(String(value)));
  }
  const query = (rest.hasBody ? [] : rest.otherFields).flatMap((field) => {
    const value = given.get(field);
    // The URL parser of fetch escapes `'` in a query. The signature of an ENTITY_REQUEST covers the query as it is
    // sent.
    return value === undefined ? [] : [`${field.name}=${encodeURIComponent(String(value)).replaceAll("'", '%27')}`];
  });
  return query.length === 0 ? path : `${path}?${query.join('&')}`;
}
