import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** Keeps its buffer, which becomes twice as large as the largest answer at most, or three times its longest text. */
let out = new BinaryWriter();

/**
 * Encodes a message or its plain form in the protobuf wire format, fields in the order of their numbers. Writers are
 * compiled once per message type, since `toBinary` takes messages only
 * (docs/adr/0033-protobuf-answers-have-their-own-encoder.md).
 */
export function encodeAnswer(desc: DescMessage, answer: object): Buffer {
  try {
    writerOf(desc)(answer as Values, out);
    const { buffer, byteOffset, length } = out.finish();
    return Buffer.from(buffer, byteOffset, length);
  } catch (error) {
    // It may hold the first half of the answer.
    out = new BinaryWriter();
    throw error;
  }
}

type Values = Readonly<Record<string, unknown>>;
type Write<T> = (value: T, out: BinaryWriter) => void;

const writers = new Map<DescMessage, Write<Values>>();

function writerOf(desc: DescMessage): Write<Values> {
  let writer = writers.get(desc);
  if (writer === undefined) {
    const fields = [...desc.fields].sort((left, right) => left.number - right.number).map(fieldWriter);
    writer = (values, out) => {
      for (const write of fields) write(values, out);
    };
    writers.set(desc, writer);
  }
  return writer;
}

function fieldWriter(field: DescField): Write<Values> {
  const write = taggedWriter(field);
  const { localName } = field;
  if (field.fieldKind === 'list') {
    return (values, out) => {
      for (const item of (values[localName] as readonly unknown[] | undefined) ?? []) write(item, out);
    };
  }
  const oneof = field.oneof?.localName;
  if (oneof !== undefined) {
    return (values, out) => {
      const chosen = values[oneof] as { readonly case?: string; readonly value?: unknown } | undefined;
      if (chosen?.case === localName) write(chosen.value, out);
    };
  }
  // proto3 leaves out default values, unless presence is tracked (optional, messages, oneofs).
  const leavesOutDefault = field.fieldKind === 'scalar' && !field.proto.proto3Optional;
  return (values, out) => {
    const value = values[localName];
    if (value !== undefined && !(leavesOutDefault && isDefault(value))) write(value, out);
  };
}

function isDefault(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === 0n;
}

function taggedWriter(field: DescField): Write<unknown> {
  const { number, message } = field;
  if (message !== undefined && field.fieldKind !== 'map') {
    return (value, out) => {
      out.tag(number, WireType.LengthDelimited).fork();
      writerOf(message)(value as Values, out);
      out.join();
    };
  }
  if (field.scalar === ScalarType.STRING) {
    return (value, out) => out.tag(number, WireType.LengthDelimited).string(value as string);
  }
  if (field.fieldKind === 'list') throw new TypeError(`${field}: no writer for packed lists`);
  switch (field.scalar) {
    case ScalarType.BOOL:
      return (value, out) => out.tag(number, WireType.Varint).bool(value as boolean);
    case ScalarType.INT32:
      return (value, out) => out.tag(number, WireType.Varint).int32(value as number);
    case ScalarType.INT64:
      return (value, out) => out.tag(number, WireType.Varint).int64(value as bigint);
    default:
      throw new TypeError(`${field}: no writer for this kind of field`);
  }
}
