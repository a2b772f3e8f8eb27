import { create, type DescField, type Message, ScalarType } from '@bufbuild/protobuf';
import { invalidField } from '../../domain/errors.ts';
import type { JsonNode } from '../../domain/json/json.ts';
import { ownText } from '../../runtime/collections/own-text.ts';
import { isOptional, jsonRule, noRestForm } from '../../service/encoding/json-field.ts';
import { unknownField } from '../call/json-fields.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import { type Parameter, readQuery } from './query.ts';

export interface RestInput {
  /** Percent-decoded, by field name. */
  readonly pathParams: Readonly<Record<string, string>>;
  /** Of the query. */
  readonly parameters: readonly Parameter[];
  /** null if the body is empty. */
  readonly body: JsonNode | null;
}

/** By their names in the descriptors, which are their names in JSON. */
type Fields = ReadonlyMap<string, DescField>;

/** Values by the fields' local names, as `create` takes them. */
type Init = Record<string, unknown>;

/**
 * Returns the function that reads the request message of a REST call. Decoding is strict: unknown fields of the body
 * and values of a wrong JSON type are `invalid_argument` with the field in `details`. null counts as absent for an
 * optional field or list, and is refused otherwise. Unknown query parameters are passed over.
 *
 * The service checks what values mean and whether required fields are present, for all transports alike.
 */
export function requestReader(route: RestRoute): (input: RestInput) => Message {
  const request = route.method.input;
  const inPath = request.fields.filter((field) => route.pathParams.includes(field.name));
  const free = fieldsOutsidePath(route);
  return (input) => {
    const init = route.hasBody ? readBody(free, input.body) : readQuery(free, input.parameters);
    for (const field of inPath) init[field.localName] = input.pathParams[field.name] ?? '';
    return create(request, init);
  };
}

export function queryParameters(route: RestRoute): Fields {
  return route.hasBody ? new Map() : fieldsOutsidePath(route);
}

function fieldsOutsidePath(route: RestRoute): Fields {
  return byName(route.method.input.fields.filter((field) => !route.pathParams.includes(field.name)));
}

function byName(fields: readonly DescField[]): Fields {
  return new Map(fields.map((field) => [field.name, field]));
}

function readBody(fields: Fields, body: JsonNode | null): Init {
  if (body === null || (body.kind === 'null' && fields.size === 0)) return {};
  if (body.kind !== 'object') throw invalidField('body', 'a JSON object');
  const init: Init = {};
  for (const { name, value } of body.members) {
    const field = fields.get(name);
    if (!field) throw unknownField(name, [...fields.keys()]);
    if (value.kind === 'null' && mayBeNull(field)) continue;
    init[field.localName] = readValue(field, value);
  }
  return init;
}

/** proto3 does not tell an absent list from an empty one, so null is an absent list. */
function mayBeNull(field: DescField): boolean {
  return isOptional(field) || (field.fieldKind === 'list' && !jsonRule(field).required);
}

function readValue(field: DescField, node: JsonNode): unknown {
  if (field.fieldKind === 'map' || field.scalar === undefined) throw noRestForm(field);
  const { name, scalar } = field;
  if (field.fieldKind !== 'list') return readScalar(field, scalar, node, name);
  if (node.kind !== 'array') throw invalidField(name, 'an array');
  return node.items.map((item, at) => readScalar(field, scalar, item, `${name}[${at}]`));
}

function readScalar(field: DescField, scalar: ScalarType, node: JsonNode, path: string): unknown {
  if (jsonRule(field).raw) {
    if (node.kind !== 'object') throw invalidField(path, 'a JSON object');
    return node.canonical;
  }
  switch (scalar) {
    case ScalarType.STRING:
      if (node.kind !== 'string') throw invalidField(path, 'a string');
      // It may be kept, as the id of a master is: not with the whole body.
      return ownText(node.value);
    case ScalarType.BOOL:
      if (node.kind !== 'boolean') throw invalidField(path, 'true or false');
      return node.value;
    case ScalarType.INT32:
      if (node.kind !== 'number' || (node.value | 0) !== node.value) throw invalidField(path, 'a 32-bit integer');
      return node.value;
    case ScalarType.INT64:
      if (node.kind !== 'number' || !Number.isSafeInteger(node.value)) throw invalidField(path, 'an integer');
      return BigInt(node.value);
    default:
      throw noRestForm(field);
  }
}
