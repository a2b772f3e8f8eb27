import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { jsonRule } from '../endpoints/rest-field.ts';

/**
 * What can still be read of a request that was refused for what it is: the access history of its caller names the
 * ledger that it was about (decisions.md, section 5). Lenient on purpose: nothing is decided by it, so each text is
 * read by itself and what is broken left out.
 */

/** A message of nothing but its texts. Payloads are none: they are large, and name nothing. */
export function messageOfTexts(desc: DescMessage, textOf: (field: DescField) => unknown): Message {
  const texts: Record<string, string> = {};
  for (const field of desc.fields) {
    const value = isText(field) ? textOf(field) : undefined;
    // Half a character, which only JSON's escapes can say, is put right here: paths cannot be made of it.
    if (typeof value === 'string') texts[field.localName] = value.toWellFormed();
  }
  return create(desc, texts);
}

/**
 * The members of a JSON object, by any reader's rules: of one that is given twice, the last. None where the bytes are
 * no JSON object.
 */
export function jsonMembers(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The texts of a serialized message, up to where it can be read. */
export function binaryTexts(desc: DescMessage, bytes: Uint8Array): Message {
  const texts = new Map<number, string>();
  const wanted = new Set(desc.fields.filter(isText).map(({ number }) => number));
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag();
      // A text that is no UTF-8 does not hide those behind it: the reader puts U+FFFD in its place.
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
