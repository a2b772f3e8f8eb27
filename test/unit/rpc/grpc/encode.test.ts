import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AppendEventsResponseSchema } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { encodeAnswer } from '../../../../src/rpc/grpc/main/encode.ts';

const INT64_MAX = 2n ** 63n - 1n;

/** Any message of a type, in plain form. */
function anyMessage(desc: DescMessage, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const fields: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of desc.fields) if (field.oneof === undefined) fields[field.localName] = anyValue(field, depth);
  for (const oneof of desc.oneofs) {
    const cases = oneof.fields.map((field) =>
      anyValue(field, depth + 1).map((value) => ({ case: field.localName, value })),
    );
    fields[oneof.localName] = fc.oneof(...cases, fc.constant({ case: undefined }));
  }
  return fc.record(fields, { requiredKeys: [] });
}

function anyValue(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.fieldKind === 'list') {
    const item = field.message === undefined ? scalar(field.scalar) : anyMessage(field.message, depth + 1);
    return fc.array(item, { maxLength: 3 });
  }
  return field.message === undefined ? scalar(field.scalar) : anyMessage(field.message, depth + 1);
}

function scalar(type: ScalarType | undefined): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return fc.oneof(
        fc.string({ unit: 'grapheme' }),
        fc.string({ unit: fc.constantFrom('a', 'é', '✓', '😀'), minLength: 100, maxLength: 200 }),
      );
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.INT32:
      return fc.integer();
    default:
      return fc.oneof(fc.bigInt({ min: -INT64_MAX, max: INT64_MAX }), fc.bigInt({ min: 0n, max: 1000n }));
  }
}

const outputs = new Map(
  apiServices.flatMap((service) =>
    service.methods.map(({ output }): [string, DescMessage] => [output.typeName, output]),
  ),
);

describe('the wire form of answers', () => {
  it.each([...outputs.values()])('$typeName is what protobuf-es writes, byte for byte', (desc) => {
    fc.assert(
      fc.property(anyMessage(desc), (plain) => {
        const expected = Buffer.from(toBinary(desc, create(desc, plain)));
        expect(encodeAnswer(desc, plain).equals(expected)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('a message and its plain form are written alike', () => {
    const plain = {
      clientIndex: 300n,
      outcome: { case: 'error' as const, value: { code: 'x', message: '✓', details: '{}', resumeFrom: 0n } },
    };
    const message: Message = create(AppendEventsResponseSchema, plain);
    expect(encodeAnswer(AppendEventsResponseSchema, message)).toEqual(encodeAnswer(AppendEventsResponseSchema, plain));
    expect(fromBinary(AppendEventsResponseSchema, encodeAnswer(AppendEventsResponseSchema, plain))).toEqual(message);
  });
});
