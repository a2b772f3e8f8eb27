import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** How much may be in one message. */
interface MessageBounds {
  /** Of all fields, at any depth. */
  readonly fieldsMax: number;
  /** Of the items of one repeated field. */
  readonly itemsMax: number;
}

/** A message with more in it than it may have, or in a form that no encoder gives it. */
export class MessageBeyondBounds extends Error {
  /** The bound that it is beyond; null if its form is wrong. */
  readonly limit: number | null;

  constructor(what: string, limit: number | null) {
    super(`a message ${what}`);
    this.name = 'MessageBeyondBounds';
    this.limit = limit;
  }
}

/**
 * Checks how much is in an encoded message, before any of it is decoded: a field of two bytes takes a hundred times as
 * much memory once it is decoded, and half a microsecond. Throws MessageBeyondBounds, or an Error if the bytes are no
 * message.
 */
export function checkBounds(schema: DescMessage, bytes: Uint8Array, bounds: MessageBounds): void {
  checkFields(schema, new BinaryReader(bytes), bytes.byteLength, { ...bounds, fields: 0 });
}

/** Goes from field to field as the decoder does, so that both find the same. `all`: of the whole message. */
function checkFields(
  schema: DescMessage,
  reader: BinaryReader,
  end: number,
  all: MessageBounds & { fields: number },
): void {
  let items: Map<DescField, number> | null = null;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    all.fields += 1;
    if (all.fields > all.fieldsMax) throw beyond(all.fieldsMax, 'fields');
    // The decoder would go through all that a group holds, and no version sends one.
    if (wireType === WireType.StartGroup) throw new MessageBeyondBounds('has a group', null);
    const field = schema.fields.find((known) => known.number === number);
    // The decoder reads a known field as its type says, whatever the bytes say.
    if (field !== undefined && wireType !== wireTypeOf(field))
      throw new MessageBeyondBounds('has a field in the form of another type', null);
    if (field?.fieldKind === 'list') {
      items ??= new Map();
      const count = (items.get(field) ?? 0) + 1;
      if (count > all.itemsMax) throw beyond(all.itemsMax, field.name);
      items.set(field, count);
    }
    if (field?.message === undefined) reader.skip(wireType, number);
    else checkFields(field.message, reader, reader.uint32() + reader.pos, all);
  }
  if (reader.pos !== end) throw new MessageBeyondBounds('has a part that runs over its end', null);
}

function beyond(limit: number, what: string): MessageBeyondBounds {
  return new MessageBeyondBounds(`has more than ${limit} ${what}`, limit);
}

/** All fields of the service's messages are messages, texts, integers or flags; the repeated ones no numbers. */
function wireTypeOf({ message, scalar }: DescField): WireType {
  return message !== undefined || scalar === ScalarType.STRING ? WireType.LengthDelimited : WireType.Varint;
}
