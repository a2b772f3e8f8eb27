import type { DescMessage, MessageShape } from '@bufbuild/protobuf';

/** A value that JSON can say. Numbers are finite; strings hold no lone surrogates. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export type JsonObject = { readonly [key: string]: JsonValue };

/** Fields that are JSON text in the descriptors (`svc.v1.json` raw) and JSON objects here. A test compares them. */
export const jsonFieldNames = [
  'payload',
  'actorSigPayload',
  'permissions',
  'metadata',
  'details',
  'trustGraph',
] as const;
/** Likewise lists of them. */
export const jsonListFieldNames = ['authorityAttestations'] as const;
/** Messages within messages that may be absent from an answer; all others are always there. A test compares them. */
export const absentMessageNames = ['key', 'signingKey'] as const;

type JsonField = (typeof jsonFieldNames)[number];
type JsonListField = (typeof jsonListFieldNames)[number];
type AbsentMessage = (typeof absentMessageNames)[number];
type Inner = `$${string}`;

/**
 * An answer as the client hands it out, made of the generated message: a plain object with every field present, `null`
 * where an optional one is absent, numbers for 64-bit integers (all of them are safe), objects for JSON.
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

/** A request as the client takes it: the generated message with optional fields and lists left out at will, JSON as objects. */
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

/** The answer of a method; nothing where its message has no fields. */
export type AnswerOf<D extends DescMessage> = keyof Answer<MessageShape<D>> extends never
  ? undefined
  : Answer<MessageShape<D>>;
export type RequestOf<D extends DescMessage> = Request<MessageShape<D>>;
