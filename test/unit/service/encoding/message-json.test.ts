import { create, type DescMessage } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CreateActorResponseSchema,
  GetActorResponseSchema,
  ListActorKeysResponseSchema,
  ListNetworkActorsResponseSchema,
  RevokeActorKeyResponseSchema,
} from '../../../../src/gen/svc/v1/actors_pb.ts';
import { EventSchema, IntegritySchema } from '../../../../src/gen/svc/v1/event_pb.ts';
import { ListLedgerEventsResponseSchema } from '../../../../src/gen/svc/v1/ledgers_pb.ts';
import { AppendEventResponseSchema, AppendEventsResponseSchema } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { GetAuthorityResponseSchema, ResolveActorResponseSchema } from '../../../../src/gen/svc/v1/resolver_pb.ts';
import { CreateWebhookResponseSchema, TestWebhookResponseSchema } from '../../../../src/gen/svc/v1/webhooks_pb.ts';
import { restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { answerWriter } from '../../../../src/rpc/rest/encode.ts';
import { restJson } from '../../../../src/service/encoding/message-json.ts';

const HEX = 'ab'.repeat(32);

const event = {
  id: '01997f3e-5a10-7756-9666-99b77db631f5',
  ledgerId: '01997f3e-5a10-7756-9666-99b77db631f6',
  seq: 9_007_199_254_740_991n,
  eventType: 'SHIPMENT_DISPATCHED',
  actorType: 'service',
  payload: '{"a":1.10,"b":{"c":[]},"__proto__":{"x":1}}',
  hash: HEX,
  contentHash: HEX,
  createdAt: '2026-11-21T02:06:39.123Z',
};

function routeFor(output: DescMessage) {
  const route = restRoutes().find((candidate) => candidate.method.output === output);
  if (!route) throw new Error(`No route answers ${output.typeName}`);
  return route;
}

describe('the JSON of an answer', () => {
  it('has every field, with null for an optional one that is absent', () => {
    expect(restJson(EventSchema, create(EventSchema, event))).toBe(
      `{"id":"${event.id}","ledger_id":"${event.ledgerId}","seq":9007199254740991,"master_id":null,"master_seq":null,` +
        `"event_type":"SHIPMENT_DISPATCHED","actor_id":null,"actor_type":"service","payload":${event.payload},` +
        `"hash":"${HEX}","content_hash":"${HEX}","caused_by_hash":null,"actor_sig":null,"signing_key_id":null,` +
        `"actor_sig_payload":null,"authority_sig":null,"authority_key_id":null,"created_at":"2026-11-21T02:06:39.123Z"}`,
    );
  });

  it('is the same from a message and from its initializer', () => {
    const init = { ...event, masterId: 'm', masterSeq: 0n, actorSigPayload: '{}' };
    expect(restJson(EventSchema, init)).toBe(restJson(EventSchema, create(EventSchema, init)));
    expect(restJson(GetActorResponseSchema, {})).toBe(restJson(GetActorResponseSchema, create(GetActorResponseSchema)));
  });

  it('keeps what is false, zero or empty', () => {
    expect(restJson(IntegritySchema, {})).toBe('{"verified":false,"issues":[]}');
    expect(restJson(ListNetworkActorsResponseSchema, {})).toBe('{"count":0,"limit":0,"offset":0,"actors":[]}');
    const webhook = restJson(CreateWebhookResponseSchema, { eventTypes: ['A', 'B'] });
    expect(webhook).toContain('"event_types":["A","B"],"ledger_id":null');
    expect(restJson(AppendEventResponseSchema, {})).toContain('"seq":0,"master_seq":0');
  });

  it('tells an optional value that is zero from one that is absent', () => {
    expect(restJson(EventSchema, { ...event, masterSeq: 0n, actorId: '' })).toContain('"master_seq":0');
    expect(restJson(EventSchema, { ...event, actorId: '' })).toContain('"actor_id":""');
  });

  it('leaves out what its rule says to leave out, wherever it stands', () => {
    expect(restJson(CreateActorResponseSchema, { actorId: 'a' })).toBe('{"actor_id":"a","svc_id":"","role":""}');
    expect(restJson(CreateActorResponseSchema, { key: { kid: 'k' } })).toContain('"key":{"kid":"k"');
    const authority = JSON.parse(restJson(GetAuthorityResponseSchema, { phase: '1' }));
    expect(authority).not.toHaveProperty('public_key');
    expect(authority).toMatchObject({ phase: '1', keys: [] });
  });

  it('embeds JSON text as it is and never as a string', () => {
    const text = restJson(EventSchema, { ...event, actorSigPayload: '{"k":"\\u2028"}' });
    expect(text).toContain('"actor_sig_payload":{"k":"\\u2028"}');
    expect(text).toContain(`"payload":${event.payload}`);
    expect(restJson(EventSchema, {})).toContain('"payload":{}');
    expect(restJson(ResolveActorResponseSchema, {})).toContain('"trust_graph":null,"authority_attestations":[]');
  });

  it('writes whole numbers beyond 2^53 digit by digit', () => {
    expect(restJson(EventSchema, { seq: 9_223_372_036_854_775_807n })).toContain('"seq":9223372036854775807');
  });

  it('escapes what could end a string early', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (role) => {
        const answer = { actor_id: '', svc_id: '', role, created_at: '' };
        expect(JSON.parse(restJson(GetActorResponseSchema, { role }))).toEqual(answer);
      }),
    );
    expect(restJson(GetActorResponseSchema, { role: '","x":"' })).toContain('"role":"\\",\\"x\\":\\""');
  });

  it('can be written for every route', () => {
    for (const route of restRoutes()) {
      if (route.method.methodKind !== 'unary') continue;
      const text = answerWriter(route)(create(route.method.output));
      if (text !== null) expect(() => JSON.parse(text)).not.toThrow();
    }
  });

  it('refuses a message that REST has no form for, when it is compiled and not when it is sent', () => {
    expect(() => restJson(AppendEventsResponseSchema, {})).toThrow('REST has no oneof');
  });
});

describe('the answer of a route', () => {
  it('is a bare array where the rule names a list', () => {
    const write = answerWriter(routeFor(ListActorKeysResponseSchema));
    expect(write(create(ListActorKeysResponseSchema))).toBe('[]');
    const keys = [{ kid: 'k', revokedAt: 't' }];
    expect(JSON.parse(write({ keys }) ?? '')).toMatchObject([{ kid: 'k', revoked_at: 't' }]);
  });

  it('is one field of the message where the rule names a message', () => {
    const write = answerWriter(routeFor(TestWebhookResponseSchema));
    const answer = JSON.parse(write({ delivery: { id: 'd', attempt: 0 } }) ?? '');
    expect(answer).toMatchObject({ id: 'd', attempt: 0, last_error: null });
  });

  it('is null, for 204, where the message has no fields', () => {
    expect(answerWriter(routeFor(RevokeActorKeyResponseSchema))({})).toBeNull();
  });
});

describe('a page of 1,000 events', () => {
  it('is written in a few milliseconds', () => {
    const payload = JSON.stringify({ text: 'x'.repeat(489) });
    const signed = { ...event, payload, actorId: event.id, actorSig: HEX };
    const events = Array.from({ length: 1000 }, (_, seq) => ({ ...signed, seq: BigInt(seq) }));
    const { ledgerId } = event;
    const page = create(ListLedgerEventsResponseSchema, { ledgerId, count: 1000, integrity: {}, events });
    const boundMs = 10;
    let bestMs = Number.POSITIVE_INFINITY;
    // Other tests keep the processors busy: it is asked again until it had one for itself.
    for (let round = 0; round < 300 && bestMs >= boundMs; round += 1) {
      const start = performance.now();
      // Node writes strings out as bytes, and only then is the text really put together.
      Buffer.from(restJson(ListLedgerEventsResponseSchema, page));
      bestMs = Math.min(bestMs, performance.now() - start);
    }
    expect(bestMs).toBeLessThan(boundMs);
  });
});
