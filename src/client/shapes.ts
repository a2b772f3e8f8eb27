import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';

/** A JSON value. Numbers are finite, and strings hold no lone surrogates. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Fields that are JSON text in the descriptors (`svc.v1.json` raw) and JSON objects here. A test compares the two. */
const jsonFieldNames = ['payload', 'actorSigPayload', 'permissions', 'metadata', 'details', 'trustGraph'] as const;
/** Fields that are lists of JSON texts in the descriptors and lists of JSON values here. */
const jsonListFieldNames = ['authorityAttestations'] as const;
/** Nested messages that may be absent from an answer. A test compares them with the descriptors. */
export const absentMessageNames = ['key', 'signingKey', 'log', 'endorsement'] as const;

const jsonNames: ReadonlySet<string> = new Set([...jsonFieldNames, ...jsonListFieldNames]);

/** Whether a field is JSON text in the descriptors and a JSON value in the client's types. */
export function isJsonText(field: DescField): boolean {
  return jsonNames.has(field.localName);
}

type JsonField = (typeof jsonFieldNames)[number];
type JsonListField = (typeof jsonListFieldNames)[number];
type AbsentMessage = (typeof absentMessageNames)[number];
type Inner = `$${string}`;

/**
 * An answer of the client, derived from the generated message: a plain object with every field present. An optional
 * field that is absent is `null`, 64-bit integers are numbers (all of them are safe), JSON text is an object.
 */
export type Answer<M> = { readonly [K in keyof M as K extends Inner ? never : K]-?: AnswerField<K, M[K]> };

type AnswerField<K, T> = K extends JsonField
  ? undefined extends T
    ? JsonObject | null
    : JsonObject
  : K extends JsonListField
    ? readonly JsonValue[]
    : NonNullable<T> extends readonly (infer Item)[]
      ? readonly AnswerValue<Item>[]
      : NonNullable<T> extends { readonly $typeName: string }
        ? Answer<NonNullable<T>> | (K extends AbsentMessage ? null : never)
        : AnswerValue<NonNullable<T>> | (undefined extends T ? null : never);

type AnswerValue<T> = T extends bigint ? number : T extends { readonly $typeName: string } ? Answer<T> : T;

/**
 * A request, derived from the generated message. Optional fields and lists may be left out, 64-bit integers are
 * numbers, JSON text is an object.
 */
export type Request<M> = {
  readonly [K in keyof M as K extends Inner ? never : M[K] extends readonly unknown[] ? never : K]: RequestField<
    K,
    M[K]
  >;
} & { readonly [K in keyof M as M[K] extends readonly unknown[] ? K : never]?: M[K] };

type RequestField<K, T> = K extends JsonField
  ? JsonObject | (undefined extends T ? undefined : never)
  : NonNullable<T> extends bigint
    ? number | (undefined extends T ? undefined : never)
    : T;

/** The answer of a method. undefined if its message has no fields. */
export type AnswerOf<D extends DescMessage> = keyof Answer<MessageShape<D>> extends never
  ? undefined
  : Answer<MessageShape<D>>;
export type RequestOf<D extends DescMessage> = Request<MessageShape<D>>;
