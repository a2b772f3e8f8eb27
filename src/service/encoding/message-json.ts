import { type DescField, type DescMessage, type MessageInitShape, ScalarType } from '@bufbuild/protobuf';
import { isOptional, jsonRule, noRestForm } from './json-field.ts';

type JsonWriter = (value: unknown) => string;

const writers = new Map<DescMessage, JsonWriter>();

/**
 * Returns a message, or its initializer, as the JSON of REST answers and webhook bodies: snake_case names; every field
 * present (`false`, `0`, `""`, `[]`); an absent `optional` as `null`, or left out if its json rule says so; int64 as a
 * number; JSON text embedded as it is; times unchanged.
 */
export function restJson<Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): string {
  return messageWriter(desc)(message);
}

/** Returns the writer of all messages of a type. It is compiled once. */
export function messageWriter(desc: DescMessage): JsonWriter {
  let writer = writers.get(desc);
  if (!writer) {
    writer = compile(desc);
    writers.set(desc, writer);
  }
  return writer;
}

function compile(desc: DescMessage): JsonWriter {
  const fields = desc.fields.map((field) => {
    if (field.oneof) throw new Error(`${desc.typeName}: REST has no oneof`);
    return {
      localName: field.localName,
      firstKey: `{"${field.name}":`,
      nextKey: `,"${field.name}":`,
      omitAbsent: jsonRule(field).omitAbsent,
      write: fieldWriter(field),
    };
  });
  return (message) => {
    const values = message as Record<string, unknown>;
    let text = '';
    for (const field of fields) {
      const value = values[field.localName];
      if (value === undefined && field.omitAbsent) continue;
      text += (text === '' ? field.firstKey : field.nextKey) + field.write(value);
    }
    return text === '' ? '{}' : `${text}}`;
  };
}

/** Returns the writer of a field's value. It also writes the value that stands for an absent field. */
export function fieldWriter(field: DescField): JsonWriter {
  const raw = jsonRule(field).raw;
  switch (field.fieldKind) {
    case 'list': {
      if (field.listKind === 'enum') throw noRestForm(field);
      const item = field.listKind === 'message' ? lateWriter(field.message) : scalarWriter(field, field.scalar, raw);
      return (value) => `[${((value ?? []) as readonly unknown[]).map((one) => item(one)).join(',')}]`;
    }
    case 'message': {
      const write = lateWriter(field.message);
      return (value) => (value === undefined ? 'null' : write(value));
    }
    case 'scalar': {
      const write = scalarWriter(field, field.scalar, raw);
      const absent = isOptional(field) ? 'null' : defaultText(field.scalar, raw);
      return (value) => (value === undefined ? absent : write(value));
    }
    default:
      throw noRestForm(field);
  }
}

/** The writer is looked up at each use, because a message may contain its own type. */
function lateWriter(desc: DescMessage): JsonWriter {
  return (value) => messageWriter(desc)(value);
}

function scalarWriter(field: DescField, scalar: ScalarType, raw: boolean): JsonWriter {
  switch (scalar) {
    case ScalarType.STRING:
      return raw ? rawText : JSON.stringify;
    case ScalarType.BOOL:
      return (value) => (value ? 'true' : 'false');
    case ScalarType.INT32:
    case ScalarType.UINT32:
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return String;
    default:
      throw noRestForm(field);
  }
}

/** An empty text means that the field is not set: JSON text is never empty. */
function rawText(value: unknown): string {
  return value === '' ? '{}' : (value as string);
}

function defaultText(scalar: ScalarType, raw: boolean): string {
  if (scalar === ScalarType.BOOL) return 'false';
  if (scalar === ScalarType.STRING) return raw ? '{}' : '""';
  return '0';
}
