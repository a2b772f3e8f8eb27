import { create, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { answerFromJson, answerFromMessage } from '../../../src/client/call/answer-decoding.ts';
import { givenFields, jsonBody, pathAndQuery } from '../../../src/client/call/request-encoding.ts';
import { endpointNamed, endpoints } from '../../../src/client/endpoint.ts';
import type { Answer, Event, JsonObject, LedgerTrustClient, Request } from '../../../src/client/index.ts';
import { absentMessageNames, isJsonText } from '../../../src/client/shapes.ts';
import { CreateActorResponseSchema } from '../../../src/gen/svc/v1/actors_pb.ts';
import { GrantLedgerDelegationRequestSchema } from '../../../src/gen/svc/v1/delegation_pb.ts';
import { type Event as EventMessage, EventSchema } from '../../../src/gen/svc/v1/event_pb.ts';
import { ListLedgerEventsRequestSchema } from '../../../src/gen/svc/v1/ledgers_pb.ts';
import { ResolveActorResponseSchema } from '../../../src/gen/svc/v1/resolver_pb.ts';
import {
  type CreateWebhookRequest,
  CreateWebhookRequestSchema,
  WebhookBodySchema,
} from '../../../src/gen/svc/v1/webhooks_pb.ts';
import { restRoutes } from '../../../src/rpc/endpoints/routes.ts';
import { isOptional, jsonRule } from '../../../src/service/encoding/json-field.ts';
import { restJson } from '../../../src/service/encoding/message-json.ts';

function fieldsOf(desc: DescMessage, seen = new Set<DescMessage>()): DescField[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field) => [field, ...(field.message === undefined ? [] : fieldsOf(field.message, seen))]);
}

const answers = [...endpoints.values()].map(({ method }) => method.output);
const requests = [...endpoints.values()].map(({ method }) => method.input);

describe('the types of the client', () => {
  it('name just the fields that are JSON in the descriptors', () => {
    const fields = [...requests, ...answers, WebhookBodySchema].flatMap((desc) => fieldsOf(desc));
    const raw = fields.filter((field) => jsonRule(field).raw);
    expect(raw.length).toBeGreaterThan(10);
    expect(fields.filter(isJsonText)).toEqual(raw);
  });

  it('make exactly those messages absent that the descriptors let be absent', () => {
    const messages = answers
      .flatMap((desc) => fieldsOf(desc))
      .filter((field) => field.fieldKind === 'message' && field.oneof === undefined);
    const omitted = messages
      .filter((field) => isOptional(field) || jsonRule(field).omitAbsent)
      .map(({ localName }) => localName);
    expect([...new Set(omitted)].sort()).toEqual([...absentMessageNames].sort());
  });

  it('are plain values', () => {
    expectTypeOf<Event['seq']>().toEqualTypeOf<number>();
    expectTypeOf<Event['masterSeq']>().toEqualTypeOf<number | null>();
    expectTypeOf<Event['payload']>().toEqualTypeOf<JsonObject>();
    expectTypeOf<Event['actorSigPayload']>().toEqualTypeOf<JsonObject | null>();
    expectTypeOf<Answer<EventMessage>>().not.toHaveProperty('$typeName');
    expectTypeOf<Request<CreateWebhookRequest>['eventTypes']>().toEqualTypeOf<string[] | undefined>();
    expectTypeOf<LedgerTrustClient['getLedger']>().parameter(0).toExtend<{ readonly ledgerId: string }>();
    expectTypeOf<LedgerTrustClient['registerDeveloper']>()
      .returns.resolves.toHaveProperty('sandbox')
      .not.toBeNullable();
    expectTypeOf<LedgerTrustClient['deleteWebhook']>().returns.resolves.toEqualTypeOf<undefined>();
  });
});

describe('the methods of the client', () => {
  it('cover the API, at the REST paths of the service', () => {
    const routes = restRoutes().filter(({ alias }) => !alias);
    const places = [...endpoints.values()].flatMap(({ method, rest }) =>
      rest === null ? [] : [`${method.name} ${rest.httpMethod} ${rest.template}`],
    );
    const served = routes.map(({ method, httpMethod, template }) => `${method.name} ${httpMethod} ${template}`);
    expect(places.sort()).toEqual(served.sort());
    expect(routes.length).toBeGreaterThan(50);
  });

  it('have request types of their own', () => {
    expect(new Set(requests.map(({ typeName }) => typeName)).size).toBe(endpoints.size);
  });
});

const given = {
  id: 'e',
  ledgerId: 'l',
  eventType: 'A',
  actorId: 'a',
  actorType: 'service',
  hash: 'h',
  contentHash: 'c',
  authoritySig: 's',
  authorityKeyId: 'k',
  createdAt: 't',
};
const event: Event = {
  ...given,
  seq: 7,
  masterId: null,
  masterSeq: null,
  payload: { n: 1.5, list: [null, true, { x: 'ö' }] },
  causedByHash: null,
  actorSig: null,
  signingKeyId: null,
  actorSigPayload: null,
};
const message = create(EventSchema, { ...given, seq: 7n, payload: '{"list":[null,true,{"x":"ö"}],"n":1.5}' });

describe('answers', () => {
  it('are the same objects from REST and from gRPC', () => {
    expect(answerFromMessage(EventSchema, message)).toEqual(event);
    expect(answerFromJson(EventSchema, JSON.parse(restJson(EventSchema, message)))).toEqual(event);
  });

  it('keep lists of JSON and absent JSON', () => {
    const actor = create(ResolveActorResponseSchema, { authorityAttestations: ['{"by":1}'] });
    const expected = { trustGraph: null, authorityAttestations: [{ by: 1 }], preferredSigning: null, keys: [] };
    expect(answerFromMessage(ResolveActorResponseSchema, actor)).toMatchObject(expected);
    const json = JSON.parse(restJson(ResolveActorResponseSchema, actor));
    expect(answerFromJson(ResolveActorResponseSchema, json)).toMatchObject(expected);
  });

  it('have null for a message that may be absent', () => {
    const fromMessage = answerFromMessage(CreateActorResponseSchema, create(CreateActorResponseSchema, {}));
    const fromJson = answerFromJson(CreateActorResponseSchema, { actor_id: '', svc_id: '', role: '' });
    for (const answer of [fromMessage, fromJson]) expect(answer).toMatchObject({ key: null });
  });

  const json = JSON.parse(restJson(EventSchema, message)) as Record<string, unknown>;
  const strange: [string, unknown][] = [
    ['no object', 'text'],
    ['a list', []],
    ['null', null],
    ['a missing field', { ...json, hash: undefined }],
    ['a text where a number is', { ...json, seq: '7' }],
    ['an unsafe number', { ...json, seq: 2 ** 53 }],
    ['a text as payload', { ...json, payload: '{}' }],
    ['a list as payload', { ...json, payload: [] }],
    ['a number where a text is', { ...json, hash: 1 }],
  ];
  it.each(strange)('are refused if they are %s', (_, value) => {
    expect(() => answerFromJson(EventSchema, value)).toThrow(expect.objectContaining({ code: 'invalid_answer' }));
  });

  it('are read without fields of a later version', () => {
    expect(answerFromJson(EventSchema, { ...json, later: 1 })).toEqual(event);
  });

  it('are refused if their JSON text is invalid', () => {
    for (const payload of ['{', '[]', '"x"']) {
      const broken = create(EventSchema, { ...message, payload });
      expect(() => answerFromMessage(EventSchema, broken)).toThrow(expect.objectContaining({ code: 'invalid_answer' }));
    }
  });
});

describe('requests', () => {
  function pathOf(request: object): string {
    const { rest } = endpointNamed('listLedgerEvents');
    if (rest === null) throw new Error('it has no place in REST');
    return pathAndQuery(rest, givenFields(ListLedgerEventsRequestSchema, { ...request }));
  }

  it('become canonical JSON with the names of the API', () => {
    const request = { ledgerId: 'l', delegateActorId: 'd', role: 'OPS "x"', permissions: { b: 1, access: 'read' } };
    const given = givenFields(GrantLedgerDelegationRequestSchema, request);
    expect(jsonBody(GrantLedgerDelegationRequestSchema.fields, given)).toBe(
      '{"ledger_id":"l","delegate_actor_id":"d","role":"OPS \\"x\\"","permissions":{"access":"read","b":1}}',
    );
  });

  it('put fields into the path and the query, percent-encoded', () => {
    const request = { ledgerId: 'a/b#?', fromSeq: 3, eventType: 'A&B=C', limit: undefined };
    expect(pathOf(request)).toBe('/v1/ledgers/a%2Fb%23%3F/events?event_type=A%26B%3DC&from_seq=3');
  });

  it.each(['', '.', '..'])('are refused with "%s" in the path', (ledgerId) => {
    expect(() => pathOf({ ledgerId })).toThrow(TypeError);
  });

  const wrong: [string, object][] = [
    ['a misspelt field', { ledgerId: 'l', permisions: {} }],
    ['a name of the API in place of the client’s', { ledger_id: 'l' }],
    ['a list as JSON', { permissions: [] }],
    ['JSON text as JSON', { permissions: '{}' }],
    ['a number as text', { role: 1 }],
    ['what JSON cannot say', { permissions: { at: new Date(0) } }],
    ['an undefined inside JSON', { permissions: { access: undefined } }],
  ];
  it.each(wrong)('are refused with %s', (_, request) => {
    expect(() => givenFields(GrantLedgerDelegationRequestSchema, { ...request })).toThrow(TypeError);
  });

  it('are refused with wrong numbers or list items', () => {
    for (const limit of [1.5, '1', Number.NaN, 2n]) {
      expect(() => givenFields(ListLedgerEventsRequestSchema, { limit })).toThrow(TypeError);
    }
    expect(() => givenFields(CreateWebhookRequestSchema, { eventTypes: [1] })).toThrow(TypeError);
    expect(() => givenFields(CreateWebhookRequestSchema, { eventTypes: 'A' })).toThrow(TypeError);
  });
});
