import { type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { invalidAnswer } from '../error.ts';
import { absentMessageNames, isJsonText } from '../shapes.ts';

// Turns the JSON of REST and the messages of gRPC into the same plain objects (Answer<M>). The server is not trusted to
// send the right types.

const mayBeAbsent: ReadonlySet<string> = new Set(absentMessageNames);

/**
 * Decodes parsed JSON with the API's field names. Ignores unknown fields. `place` names the value in errors. Throws
 * LedgerTrustError `invalid_answer` if a value is missing or has another type.
 */
export function answerFromJson(desc: DescMessage, value: unknown, place: string = desc.name): Record<string, unknown> {
  const members = objectAt(value, place);
  const answer: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const member = Object.hasOwn(members, field.name) ? members[field.name] : undefined;
    answer[field.localName] = fromJson(field, member, `${place}.${field.name}`);
  }
  return answer;
}

function fromJson(field: DescField, value: unknown, place: string): unknown {
  switch (field.fieldKind) {
    case 'list': {
      if (!Array.isArray(value)) throw invalidAnswer(place, 'a list');
      if (isJsonText(field)) return value;
      return value.map((item, at) =>
        field.listKind === 'message'
          ? answerFromJson(field.message, item, `${place}[${at}]`)
          : fromScalar(field, field.listKind === 'scalar' ? field.scalar : ScalarType.STRING, item, `${place}[${at}]`),
      );
    }
    case 'message':
      if (value === undefined || value === null) return absentMessage(field, place);
      return answerFromJson(field.message, value, place);
    case 'scalar':
      if (value === undefined || value === null) {
        if (field.proto.proto3Optional) return null;
        throw invalidAnswer(place, 'given');
      }
      return fromScalar(field, field.scalar, value, place);
    default:
      throw invalidAnswer(place, 'of a kind that this client knows');
  }
}

function fromScalar(field: DescField, scalar: ScalarType, value: unknown, place: string): unknown {
  if (isJsonText(field)) return objectAt(value, place);
  switch (scalar) {
    case ScalarType.STRING:
      if (typeof value !== 'string') throw invalidAnswer(place, 'a string');
      return value;
    case ScalarType.BOOL:
      if (typeof value !== 'boolean') throw invalidAnswer(place, 'true or false');
      return value;
    default:
      if (!Number.isSafeInteger(value)) throw invalidAnswer(place, 'a whole number');
      return value;
  }
}

/** Decodes a generated message. `place` and errors are those of answerFromJson. */
export function answerFromMessage(
  desc: DescMessage,
  message: Message,
  place: string = desc.name,
): Record<string, unknown> {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  const answer: Record<string, unknown> = {};
  for (const field of desc.fields) {
    answer[field.localName] = fromMessage(field, values[field.localName], `${place}.${field.localName}`);
  }
  return answer;
}

function fromMessage(field: DescField, value: unknown, place: string): unknown {
  switch (field.fieldKind) {
    case 'list': {
      const items = value as readonly unknown[];
      if (isJsonText(field)) return items.map((item) => parsed(item as string, place));
      if (field.listKind !== 'message') return items;
      return items.map((item, at) => answerFromMessage(field.message, item as Message, `${place}[${at}]`));
    }
    case 'message':
      if (value === undefined) return absentMessage(field, place);
      return answerFromMessage(field.message, value as Message, place);
    case 'scalar':
      if (value === undefined) return null;
      if (isJsonText(field)) return value === '' ? {} : objectAt(parsed(value as string, place), place);
      if (typeof value !== 'bigint') return value;
      if (!Number.isSafeInteger(Number(value))) throw invalidAnswer(place, 'a safe whole number');
      return Number(value);
    default:
      throw invalidAnswer(place, 'of a kind that this client knows');
  }
}

/** The field of a live answer's oneof with this name. null: this client does not know it. */
export function liveField(
  output: DescMessage,
  hasName: (field: DescField) => boolean,
): { readonly kind: string; readonly message: DescMessage } | null {
  const field = output.fields.find((candidate) => candidate.oneof !== undefined && hasName(candidate));
  return field?.message === undefined ? null : { kind: field.localName, message: field.message };
}

function absentMessage(field: DescField, place: string): null {
  if (mayBeAbsent.has(field.localName)) return null;
  throw invalidAnswer(place, 'given');
}

function objectAt(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidAnswer(place, 'a JSON object');
  return value as Record<string, unknown>;
}

/** Parses JSON. Throws LedgerTrustError `invalid_answer`. */
export function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalidAnswer(place, 'JSON', cause);
  }
}
