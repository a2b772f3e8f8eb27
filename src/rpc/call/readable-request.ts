import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { LedgerError } from '../../domain/errors.ts';
import { isOfTooManyValues } from '../../domain/json/json.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { jsonRule } from '../../service/encoding/json-field.ts';

// What can be read of a request that was refused as invalid. The access history needs the ledger that it names. No
// decision depends on it, so broken texts are left out.

/** Makes a message of its text fields alone. Fields of JSON text are left out: they are large and name nothing. */
export function messageOfTexts(desc: DescMessage, textOf: (field: DescField) => unknown): Message {
  const texts: Record<string, string> = {};
  for (const field of desc.fields) {
    const value = isText(field) ? textOf(field) : undefined;
    // JSON escapes can write a lone surrogate, for which encodeURIComponent throws.
    if (typeof value === 'string') texts[field.localName] = value.toWellFormed();
  }
  return create(desc, texts);
}

/**
 * Returns the members of a JSON object, the last of each name; none if the bytes are no JSON object, or were refused
 * because of their many values: it would take long to read them all.
 */
export function jsonMembers(bytes: Buffer, error: LedgerError): Readonly<Record<string, unknown>> {
  if (isOfTooManyValues(error)) return {};
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/**
 * Returns the texts of a serialized message, up to the first byte that cannot be parsed. Looks at as many fields as a
 * request may have.
 */
export function binaryTexts(desc: DescMessage, bytes: Uint8Array): Message {
  const texts = new Map<number, string>();
  const wanted = new Set(desc.fields.filter(isText).map(({ number }) => number));
  const reader = new BinaryReader(bytes);
  try {
    for (let fields = 0; fields < limits.requestFieldsMax && reader.pos < reader.len; fields += 1) {
      const [number, wireType] = reader.tag();
      // A text that is not UTF-8 does not hide the texts after it: the reader puts U+FFFD in its place.
      if (wireType === WireType.LengthDelimited && wanted.has(number)) texts.set(number, reader.string());
      else reader.skip(wireType, number);
    }
  } catch {
    // The rest cannot be read.
  }
  return messageOfTexts(desc, ({ number }) => texts.get(number));
}

function isText(field: DescField): boolean {
  return field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING && !jsonRule(field).raw;
}
