import { fromBinary, type Message } from '@bufbuild/protobuf';
import { invalidField, LedgerError } from '../../domain/errors.ts';
import { type JsonNode, parseJsonField } from '../../domain/json/json.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Decoded } from './incoming-call.ts';
import { checkBounds, MessageBeyondBounds } from './message-bounds.ts';

const { requestFieldsMax } = limits;
const requestBounds = { fieldsMax: requestFieldsMax, itemsMax: requestFieldsMax };

/**
 * Reads a serialized message. Unknown field numbers are ignored. Throws `payload_too_large` if it has too many fields,
 * before any is read, and `invalid_argument` if it is no message.
 */
export function readMessage({ method: { input } }: Endpoint, bytes: Uint8Array): Message {
  try {
    checkBounds(input, bytes, requestBounds);
    return fromBinary(input, bytes, { readUnknownFields: false });
  } catch (cause) {
    const limit = cause instanceof MessageBeyondBounds ? cause.limit : null;
    if (limit !== null) throw new LedgerError('payload_too_large', `A request may have ${limit} fields.`, { limit });
    const message = `The request is no serialized ${input.typeName}.`;
    throw new LedgerError('invalid_argument', message, { expected: input.typeName }, cause);
  }
}

/**
 * Checks the fields of JSON text as I-JSON and replaces them by their canonical form, as REST does with the values in a
 * body. Absent fields are left for the service to check.
 */
export function readJsonFields(endpoint: Endpoint, message: Message): Decoded {
  const values = message as unknown as Record<string, unknown>;
  const json = new Map<string, JsonNode>();
  for (const field of endpoint.rawFields) {
    const text = values[field.localName];
    if (typeof text !== 'string' || text === '') continue;
    const node = parseJsonField(text);
    if (node.kind !== 'object') throw invalidField(field.name, 'a JSON object');
    values[field.localName] = node.canonical;
    json.set(field.name, node);
  }
  return { message, json };
}

/** A caller's name for a field goes into the answer and the log, so it is cut to this length. */
const SHOWN_NAME_MAX_CHARS = 128;

/** `known` lists the valid names. */
export function unknownField(path: string, known: readonly string[]): LedgerError {
  const field = path.length > SHOWN_NAME_MAX_CHARS ? `${path.slice(0, SHOWN_NAME_MAX_CHARS)}…` : path;
  const expected = known.length === 0 ? 'no fields' : `one of ${known.join(', ')}`;
  return new LedgerError('invalid_argument', `There is no field ${JSON.stringify(field)} here.`, { field, expected });
}
