import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { messageFieldsMax, messageItemsMax } from './exchange-method.ts';

/** A message with more in it than a node sends. The stream that it came on must end. */
export class MessageBeyondBounds extends Error {
  constructor(what: string) {
    super(`a message of another node ${what}`);
    this.name = 'MessageBeyondBounds';
  }
}

/**
 * Checks how much is in an encoded message, before any of it is decoded: an item of two bytes takes a hundred times as
 * much memory once it is decoded. Throws MessageBeyondBounds, or an Error if the bytes are no message.
 */
export function checkBounds(schema: DescMessage, bytes: Uint8Array): void {
  checkFields(schema, new BinaryReader(bytes), bytes.byteLength, { fields: 0 });
}

/** Goes from field to field as the decoder does, so that both find the same. `all`: of the whole message. */
function checkFields(schema: DescMessage, reader: BinaryReader, end: number, all: { fields: number }): void {
  const items = new Map<DescField, number>();
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    all.fields += 1;
    if (all.fields > messageFieldsMax) throw new MessageBeyondBounds(`has more than ${messageFieldsMax} fields`);
    // The decoder would go through all that a group holds, and no version sends one.
    if (wireType === WireType.StartGroup) throw new MessageBeyondBounds('has a group');
    const field = schema.fields.find((known) => known.number === number);
    // The decoder reads a known field as its type says, whatever the bytes say.
    if (field !== undefined && wireType !== wireTypeOf(field)) throw new MessageBeyondBounds('has a field of no type');
    if (field?.fieldKind === 'list') {
      const count = (items.get(field) ?? 0) + 1;
      if (count > messageItemsMax) throw new MessageBeyondBounds(`has more than ${messageItemsMax} ${field.name}`);
      items.set(field, count);
    }
    if (field?.message === undefined) reader.skip(wireType, number);
    else checkFields(field.message, reader, reader.uint32() + reader.pos, all);
  }
  if (reader.pos !== end) throw new MessageBeyondBounds('has a part that runs over its end');
}

/** All fields of the messages between nodes are messages, texts, integers or flags; the repeated ones no numbers. */
function wireTypeOf({ message, scalar }: DescField): WireType {
  return message !== undefined || scalar === ScalarType.STRING ? WireType.LengthDelimited : WireType.Varint;
}
