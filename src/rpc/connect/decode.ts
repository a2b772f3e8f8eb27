import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { invalidField, LedgerError } from '../../domain/errors.ts';
import { type JsonNode, toValue } from '../../domain/json/json.ts';
import { unknownField } from '../call/json-fields.ts';

/**
 * Reads a message from the JSON form of protobuf, with field names as in the descriptors or in camel case. Unknown
 * fields and values of a wrong type are `invalid_argument` with the field in `details`, as in REST.
 */
export function readProtobufJson(desc: DescMessage, node: JsonNode): Message {
  try {
    // Texts of the node itself would keep the whole body.
    return fromJson(desc, JSON.parse(node.canonical) as JsonValue, { ignoreUnknownFields: false });
  } catch (cause) {
    throw faultOf(desc, node) ?? noneOf(desc, cause);
  }
}

/** Finds the field that cannot be read by itself: the library names it only in the text of its error. */
function faultOf(desc: DescMessage, node: JsonNode): LedgerError | null {
  if (node.kind !== 'object') return invalidField('body', 'a JSON object');
  for (const { name, value } of node.members) {
    const field = desc.fields.find((known) => known.jsonName === name || known.name === name);
    if (field === undefined) {
      return unknownField(
        name,
        desc.fields.map((known) => known.jsonName),
      );
    }
    try {
      fromJson(desc, { [name]: toValue(value) as JsonValue });
    } catch {
      return invalidField(name, kindOf(field));
    }
  }
  return null;
}

function kindOf(field: DescField): string {
  switch (field.fieldKind) {
    case 'list':
      return field.listKind === 'scalar' && field.scalar === ScalarType.STRING ? 'an array of strings' : 'an array';
    case 'scalar':
      if (field.scalar === ScalarType.STRING) return 'a string';
      return field.scalar === ScalarType.BOOL ? 'true or false' : 'an integer';
    default:
      return 'of the kind that the API document gives';
  }
}

function noneOf(desc: DescMessage, cause: unknown): LedgerError {
  const message = `The request is no ${desc.typeName} in the JSON form of protobuf.`;
  return new LedgerError('invalid_argument', message, { expected: desc.typeName }, cause);
}
