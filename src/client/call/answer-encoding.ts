import { type DescField, type DescMessage, getOption } from '@bufbuild/protobuf';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { EventSchema } from '../../gen/svc/v1/event_pb.ts';
import { json } from '../../gen/svc/v1/options_pb.ts';
import { GetAuthorityResponseSchema, ResolveActorResponseSchema } from '../../gen/svc/v1/resolver_pb.ts';
import { endpointNamed } from '../endpoint.ts';
import { invalidAnswer } from '../error.ts';
import type { Event } from '../event.ts';
import type { ActorDocument, AuthorityDocument } from '../verify/key-source.ts';
import { answerFromJson } from './answer-decoding.ts';

// Writes events and documents as JSON with the API's field names, as REST sends them, and reads them back: for files
// that others verify. Reading throws LedgerTrustError `invalid_answer` if a type is wrong.

const eventFields: ReadonlySet<string> = new Set(EventSchema.fields.map(({ name }) => name));

export function eventToJson(event: Event): string {
  return jsonOf(EventSchema, event);
}

/**
 * Reads an event. Refuses fields that events do not have: no hash covers them, and a reader of the file would take them
 * for verified.
 */
export function eventFromJson(value: unknown): Event {
  const event = answerFromJson(EventSchema, value, 'event');
  const strange = Object.keys(value as object).find((name) => !eventFields.has(name));
  if (strange !== undefined) throw invalidAnswer(`event.${strange}`, 'a field of an event, and no hash covers it');
  return event as unknown as Event;
}

export function actorDocumentToJson(document: ActorDocument): string {
  return jsonOf(ResolveActorResponseSchema, document);
}

export function actorDocumentFromJson(value: unknown): ActorDocument {
  return answerFromJson(ResolveActorResponseSchema, value, 'resolver document') as unknown as ActorDocument;
}

export function authorityDocumentToJson(document: AuthorityDocument): string {
  return jsonOf(GetAuthorityResponseSchema, document);
}

export function authorityDocumentFromJson(value: unknown): AuthorityDocument {
  return answerFromJson(GetAuthorityResponseSchema, value, 'trust anchor') as unknown as AuthorityDocument;
}

/** The JSON that REST answers with, for the answer to a method by its name on the client. */
export function answerToJson(method: string, answer: object): unknown {
  const { method: desc, rest } = endpointNamed(method);
  const members = namedByApi(desc.output, answer, isShown);
  return rest?.responseField == null ? members : members[rest.responseField.name];
}

/** Whether REST shows a field with this value. */
function isShown(field: DescField, value: unknown): boolean {
  return value !== null || !getOption(field, json).omitAbsent;
}

function jsonOf(desc: DescMessage, answer: object): string {
  return canonicalJson(namedByApi(desc, answer));
}

type FieldFilter = (field: DescField, value: unknown) => boolean;

function namedByApi(desc: DescMessage, answer: object, isKept: FieldFilter = () => true): Record<string, unknown> {
  const values = answer as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    desc.fields
      .map((field) => [field, values[field.localName]] as const)
      .filter(([field, value]) => value !== undefined && isKept(field, value))
      .map(([field, value]) => [field.name, jsonValueOf(field, value, isKept)]),
  );
}

function jsonValueOf(field: DescField, value: unknown, isKept: FieldFilter): unknown {
  const { message } = field;
  if (message === undefined || value === null) return value;
  return Array.isArray(value)
    ? value.map((item: object) => namedByApi(message, item, isKept))
    : namedByApi(message, value as object, isKept);
}
