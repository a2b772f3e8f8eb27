import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { exactlyOneOf, isOptional, jsonRule, needsSomeField, noRestForm } from '../../service/encoding/json-field.ts';
import type { Comments } from './comments.ts';
import { exampleOf, formatSchema, type JsonObject, textFormat } from './format.ts';

/** An absent value is left out or null in requests, and null in answers. */
type Side = 'request' | 'answer';

/** Collects the schemas that the document refers to, each once. */
export interface SchemaBook {
  readonly comments: Comments;
  readonly schemas: Map<string, JsonObject>;
}

/** Adds the schema, and all that it refers to, to the book. */
export function messageRef(
  book: SchemaBook,
  desc: DescMessage,
  side: Side,
  without: readonly string[] = [],
): JsonObject {
  const name = schemaName(desc);
  if (!book.schemas.has(name)) {
    book.schemas.set(name, {});
    const fields = desc.fields.filter((field) => !without.includes(field.name));
    book.schemas.set(name, objectSchema(book, desc, fields, side));
  }
  return { $ref: `#/components/schemas/${name}` };
}

/** `CreateLedgerResult`: oapi-codegen has a type `CreateLedgerResponse` of its own for each operation. */
export function schemaName(desc: DescMessage): string {
  return desc.name.replace(/Response$/, 'Result');
}

function objectSchema(book: SchemaBook, desc: DescMessage, fields: readonly DescField[], side: Side): JsonObject {
  const required = fields.filter((field) => isRequired(field, side)).map((field) => field.name);
  return {
    type: 'object',
    description: commentOf(book, desc.typeName),
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(book, field, side)])),
    ...(required.length > 0 ? { required } : {}),
    ...exactlyOne(exactlyOneOf(desc)),
    ...(needsSomeField(desc) ? someField : {}),
    // Answers may gain fields within a version. A misspelt field of a request is refused.
    ...(side === 'request' ? { additionalProperties: false } : {}),
  };
}

/** A bare `oneOf` would say the same, but generators take it for a choice of types and make an empty one. */
function exactlyOne(names: readonly string[]): JsonObject {
  if (names.length === 0) return {};
  return { if: { oneOf: names.map((name) => ({ required: [name] })) }, else: { not: {} } };
}

/** At least one field with a value. A null counts as no value. */
const someField: JsonObject = {
  minProperties: 1,
  if: { not: { additionalProperties: { type: 'null' } } },
  else: { not: {} },
};

function isRequired(field: DescField, side: Side): boolean {
  const rule = jsonRule(field);
  return side === 'request' ? rule.required : !rule.omitAbsent;
}

export function fieldSchema(book: SchemaBook, field: DescField, side: Side): JsonObject {
  const description = commentOf(book, `${field.parent.typeName}.${field.name}`);
  switch (field.fieldKind) {
    case 'list':
      return { type: 'array', description, items: itemSchema(book, field, side) };
    case 'message':
      if (isOptional(field) && side === 'answer' && !jsonRule(field).omitAbsent)
        return { ...nullableObject(book, field.message, side), description };
      return { description, ...messageRef(book, field.message, side) };
    case 'scalar':
      return { description, ...nullable(field, side, scalarSchema(field, field.scalar)) };
    default:
      throw noRestForm(field);
  }
}

function itemSchema(book: SchemaBook, field: DescField & { fieldKind: 'list' }, side: Side): JsonObject {
  if (field.listKind === 'message') return messageRef(book, field.message, side);
  if (field.listKind === 'scalar') return scalarSchema(field, field.scalar);
  throw noRestForm(field);
}

/** As a parameter or inside a list, where a scalar is never null. */
export function scalarSchema(field: DescField, scalar: ScalarType): JsonObject {
  const { raw, values, min, max } = jsonRule(field);
  switch (scalar) {
    case ScalarType.STRING:
      if (raw) return { type: 'object' };
      return {
        type: 'string',
        ...formatSchema(textFormat(field)),
        ...(values.length > 0 ? { enum: [...values] } : {}),
      };
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.INT32:
    case ScalarType.INT64:
      return {
        type: 'integer',
        format: scalar === ScalarType.INT32 ? 'int32' : 'int64',
        ...(min === undefined ? {} : { minimum: min }),
        ...(max === undefined ? {} : { maximum: max }),
      };
    default:
      throw noRestForm(field);
  }
}

function nullable(field: DescField, side: Side, schema: JsonObject): JsonObject {
  const rule = jsonRule(field);
  if (exactlyOneOf(field.parent).includes(field.name)) return schema;
  if (!isOptional(field) || (side === 'request' ? rule.required : rule.omitAbsent)) return schema;
  const { enum: values } = schema;
  return {
    ...schema,
    type: [schema.type, 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
  };
}

/** Written out where it stands: generators take `anyOf` of a reference and null for a choice of types. */
function nullableObject(book: SchemaBook, desc: DescMessage, side: Side): JsonObject {
  return { ...objectSchema(book, desc, desc.fields, side), type: ['object', 'null'] };
}

/** With the optional fields of a request too. */
export function messageExample(desc: DescMessage, without: readonly string[] = []): JsonObject {
  const fields = desc.fields.filter((field) => !without.includes(field.name));
  return Object.fromEntries(fields.map((field) => [field.name, fieldExample(field)]));
}

export function fieldExample(field: DescField): unknown {
  switch (field.fieldKind) {
    case 'scalar':
      return exampleOf(field, field.scalar);
    case 'message':
      return messageExample(field.message);
    case 'list': {
      const { example } = jsonRule(field);
      if (example !== '') return JSON.parse(example);
      return field.listKind === 'message' ? [messageExample(field.message)] : [];
    }
    default:
      throw noRestForm(field);
  }
}

/** Throws if there is none: comments are the documentation of the API. */
export function commentOf(book: SchemaBook, name: string): string {
  const comment = book.comments.get(name);
  if (comment === undefined) throw new Error(`${name} has no comment`);
  return comment;
}
