import { beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '../../../../src/domain/keys/hash.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import {
  bareEntityId,
  bearer,
  keyedEntityId,
  listeningNodeForTests,
  masterId,
  otherActorId,
} from '../../../support/listening-node.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { faultyRecordStore, scriptedFaults } from '../../../support/store-faults.ts';

let calls: Call[] = [];
const faults = scriptedFaults();
const note = async (_request: unknown, call: Call) => {
  calls.push(call);
  return {};
};

const node = await listeningNodeForTests({
  grpc: false,
  records: faultyRecordStore(new MemoryRecordStore(), faults.choose),
  handlers: {
    'DeveloperService.GetDeveloper': note,
    'MasterService.ListMasters': note,
    'MasterService.AppendEvent': note,
    'EngagementService.CreateEngagement': note,
    'EntityService.SetArlGate': note,
    'HealthService.GetHealth': note,
  },
});
beforeEach(() => {
  calls = [];
});

const entity = (actor: string, more: Record<string, string> = {}) => ({
  'x-actor-id': actor,
  'x-actor-type': 'device',
  ...more,
});
const signed = (actor: string, time = new Date().toISOString(), more: Record<string, string> = {}) =>
  entity(actor, { 'x-actor-sig': 'good-signature', 'x-timestamp': time, ...more });

type Headers = Record<string, string>;
async function ask(method: string, path: string, headers: Headers, body?: string): Promise<[number, string]> {
  const sent = body === undefined ? { headers } : { headers: { 'content-type': 'application/json', ...headers }, body };
  const response = await fetch(node.base + path, { method, ...sent });
  const answer = (await response.json()) as { error?: { code: string } };
  return [response.status, answer.error?.code ?? 'ok'];
}
const list = (headers: Record<string, string>) => ask('GET', '/v1/traceledger/master?ledger_id=x', headers);
const engage = (headers: Record<string, string>, purpose = 'P') =>
  ask('POST', '/v1/engagements', headers, JSON.stringify({ counterparty_actor_id: otherActorId, purpose }));

describe('API keys', () => {
  it('are accepted with any case of the scheme', async () => {
    expect(await list(bearer)).toEqual([200, 'ok']);
    expect(await list({ authorization: bearer.authorization.replace('Bearer', 'bearer') })).toEqual([200, 'ok']);
    expect(calls[0]?.caller).toMatchObject({ via: 'api_key', world: 'sandbox', actorType: 'service', mustSign: false });
  });

  it.each([
    ['an unknown key', 'Bearer nope'],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['two keys in one header', `${bearer.authorization}, ${bearer.authorization}`],
    ['no key behind the scheme', 'Bearer'],
    ['words around the key', `${bearer.authorization} x`],
  ])('with %s are invalid_api_key, also with good identity headers', async (_name, authorization) => {
    expect(await list({ authorization })).toEqual([401, 'invalid_api_key']);
    expect(await list({ ...entity(bareEntityId), authorization })).toEqual([401, 'invalid_api_key']);
    expect(calls).toEqual([]);
  });

  it('win over identity headers', async () => {
    expect(await list({ ...entity(bareEntityId), ...bearer })).toEqual([200, 'ok']);
    expect(calls[0]?.caller?.via).toBe('api_key');
  });

  it('take the type of X-ACTOR-TYPE, which must be one of four', async () => {
    for (const type of ['human', 'service', 'external', 'device']) {
      await list({ ...bearer, 'x-actor-type': type });
      expect(calls.at(-1)?.caller?.actorType).toBe(type);
    }
    for (const type of ['robot', 'Device', '', 'device, device']) {
      expect(await list({ ...bearer, 'x-actor-type': type })).toEqual([401, 'invalid_actor_identity']);
    }
  });

  it('in the query are no credential', async () => {
    expect(await ask('GET', '/v1/developer/me?api_key=svc_sk_test_good', {})).toEqual([401, 'unauthenticated']);
  });

  it('are ignored by a method that needs no credential', async () => {
    expect(await ask('GET', '/v1/health', { authorization: 'Bearer nope' })).toEqual([200, 'ok']);
    expect(calls[0]?.caller).toBe(null);
  });
});

describe('identity headers', () => {
  it('of an entity without keys are accepted if the method takes them', async () => {
    expect(await list(entity(bareEntityId))).toEqual([200, 'ok']);
    const caller = { via: 'entity_header', actorId: bareEntityId, apiKeyId: null, actorType: 'device' };
    expect(calls[0]?.caller).toMatchObject(caller);
  });

  it('on a method that takes only API keys are unauthenticated', async () => {
    expect(await ask('GET', '/v1/developer/me', entity(bareEntityId))).toEqual([401, 'unauthenticated']);
  });

  it.each([
    ['of an actor that is no entity', entity(otherActorId)],
    ['of another type', { 'x-actor-id': bareEntityId, 'x-actor-type': 'service' }],
    ['without a type', { 'x-actor-id': bareEntityId }],
    ['in upper case', entity(bareEntityId.toUpperCase())],
    ['empty', entity('')],
    ['twice', entity(`${bareEntityId}, ${bareEntityId}`)],
  ])('%s are invalid_actor_identity', async (_name, headers) => {
    expect(await list(headers as Record<string, string>)).toEqual([401, 'invalid_actor_identity']);
  });

  it('with a type alone are no credential', async () => {
    expect(await list({ 'x-actor-type': 'device' })).toEqual([401, 'unauthenticated']);
  });
});

describe('entity requests', () => {
  it('of an entity with keys must be signed, reads too', async () => {
    expect(await list(entity(keyedEntityId))).toEqual([401, 'signature_required']);
    expect(await list(entity(keyedEntityId, { 'x-actor-sig': 'good-signature' }))).toEqual([401, 'signature_required']);
    expect(await list(signed(keyedEntityId))).toEqual([200, 'ok']);
  });

  it('are signed over method, path with query, body hash and time, and have no event signature', async () => {
    node.credentials.verified.length = 0;
    const time = new Date().toISOString();
    await engage(signed(keyedEntityId, time), 'OVER');
    const body = JSON.stringify({ counterparty_actor_id: otherActorId, purpose: 'OVER' });
    expect(node.credentials.verified).toEqual([
      { method: 'POST', path: '/v1/engagements', bodyHash: sha256Hex(body), timestamp: time },
    ]);
    await list(signed(keyedEntityId, time));
    expect(node.credentials.verified[1]).toEqual({
      method: 'GET',
      path: '/v1/traceledger/master?ledger_id=x',
      bodyHash: sha256Hex(''),
      timestamp: time,
    });
    expect(calls.map(({ signature }) => signature)).toEqual([null, null]);
  });

  it('with a malformed time, or one off by more than 300 s, are invalid_signature', async () => {
    const at = (offS: number) => new Date(Date.now() + offS * 1000).toISOString();
    for (const time of ['now', '2026-13-01T00:00:00Z', at(-310), at(310)]) {
      expect(await list(signed(keyedEntityId, time))).toEqual([401, 'invalid_signature']);
    }
    for (const time of [at(-290), at(290)]) expect(await list(signed(keyedEntityId, time))).toEqual([200, 'ok']);
  });

  it('with a wrong or doubled signature are refused, also if none was required', async () => {
    expect(await list(signed(bareEntityId, undefined, { 'x-actor-sig': 'bad' }))).toEqual([401, 'invalid_signature']);
    const doubled = { 'x-actor-sig': 'good-signature, good-signature' };
    expect(await list(signed(keyedEntityId, undefined, doubled))).toEqual([401, 'invalid_signature']);
  });

  it('whose use cannot be recorded with certainty change nothing and are unavailable', async () => {
    faults.fail('record-write', 'applied');
    expect(await engage(signed(keyedEntityId), 'IN_DOUBT')).toEqual([503, 'unavailable']);
    expect(calls).toEqual([]);
  });

  it('that are sent a hundred times at once change state once', async () => {
    const headers = signed(keyedEntityId);
    const answers = await Promise.all(Array.from({ length: 100 }, () => engage(headers, 'HUNDRED')));
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1);
    expect(calls).toHaveLength(1);
  });

  it('that are refused for their fields do not use up their signature', async () => {
    expect(await ask('POST', '/v1/engagements', signed(keyedEntityId), '{"x":1}')).toEqual([400, 'invalid_argument']);
    const gate = ['PATCH', '/v1/entities/arl-gate', signed(keyedEntityId), '{"require_arl":true}'] as const;
    expect(await ask(...gate)).toEqual([200, 'ok']);
  });

  it('on a method whose event is signed carry the event’s signature, which the handler gets', async () => {
    const headers = entity(keyedEntityId, { 'x-actor-sig': 'event-signature' });
    const path = `/v1/traceledger/master/${masterId}/events`;
    expect(await ask('POST', path, headers, '{"event_type":"A","payload":{}}')).toEqual([200, 'ok']);
    expect(calls[0]).toMatchObject({
      signature: { keyId: null, signature: 'event-signature' },
      caller: { mustSign: true },
    });
  });
});
