import { randomUUID } from 'node:crypto';
import { create, type DescMethod, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { afterAll, describe, expect, test } from 'vitest';
import { DelegationService } from '../../src/gen/svc/v1/delegation_pb.ts';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import { historyOf, tracked } from '../support/access-events.ts';
import { callGrpc, grpcClient } from '../support/grpc-client.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newParty, type Party } from '../support/parties.ts';
import type { Fields } from '../support/parties-rest.ts';

/** A call that is refused for its body names a ledger all the same, as far as its path and its body can be read. */

const { node, base, order, master } = await nodeWithMaster({ keyed: false });
const { buyer, ledgerId } = { ...order };
const stranger = await newParty(base, { keyed: false });
const client = grpcClient(node.grpcAddress);
afterAll(() => client.close());

const ofMaster = `/v1/traceledger/master/${master.uuid}`;
const delegate = stranger.actorId;
const inLedger = { ledger_id: ledgerId, delegate_actor_id: delegate, role: 'AUDITOR' };
const inMaster = { master_id: master.uuid, delegate_actor_id: delegate, role: 'AUDITOR', permissions: {} };
const opened = { ledger_id: ledgerId, business_ref: 'R', scope: 'ORDER' };
/** Of valid JSON texts, those that I-JSON refuses. */
const withTwice = `{"master_id":"${master.uuid}","role":"A","r\\u006fle":"B"}`;
const withHugeNumber = `{"ledger_id":"${ledgerId}","delegate_actor_id":1e400}`;
const deep = `{"ledger_id":"${ledgerId}","a":${'['.repeat(100)}${']'.repeat(100)}}`;

/** What the newest event of a history says of a call, if it is that call's. */
function shown(history: readonly Fields[], requestId: string): readonly unknown[] | null {
  const [event] = history;
  if (event?.request_id !== requestId) return null;
  return [event.method, event.path, event.response_status, event.ledger_id];
}

type Case = readonly [name: string, verb: string, path: string, body: unknown];

describe('over REST', () => {
  const cases: readonly Case[] = [
    ['an unknown field beside a ledger', 'POST', '/v1/delegation/ledger', { ...inLedger, permision: {} }],
    ['a mistyped field beside a ledger', 'POST', '/v1/delegation/ledger', { ...inLedger, role: 7 }],
    ['an unknown field of a revocation', 'PATCH', '/v1/delegation/ledger', { ...inLedger, why: 'x' }],
    ['an unknown field beside a master', 'POST', '/v1/delegation/master', { ...inMaster, until: 'x' }],
    ['a mistyped field beside a master', 'PATCH', '/v1/delegation/master', { ...inMaster, delegate_actor_id: [] }],
    ['an unknown field of a new master', 'POST', '/v1/traceledger/master', { ...opened, name: 'x' }],
    ['a mistyped field of a new master', 'POST', '/v1/traceledger/master', { ...opened, scope: null }],
    ['an unknown field of a subscription', 'POST', '/v1/webhooks', { ledger_id: ledgerId, target: 'x' }],
    ['a mistyped field of a subscription', 'POST', '/v1/webhooks', { ledger_id: ledgerId, url: 'x', event_types: 'A' }],
    ['a key that is given twice', 'POST', '/v1/delegation/master', withTwice],
    ['a number that is none', 'POST', '/v1/delegation/ledger', withHugeNumber],
    ['a body that is too deep', 'POST', '/v1/delegation/ledger', deep],
    ['an unknown field of an append', 'POST', `${ofMaster}/events`, { event_type: 'A', payload: {}, x: 1 }],
    ['a payload that is no object', 'POST', `${ofMaster}/events`, { event_type: 'A', payload: 'x' }],
    ['an append that is no JSON', 'POST', `${ofMaster}/events`, '{"event_type":'],
    ['an append that is a list', 'POST', `${ofMaster}/events`, []],
    ['a closing with a body', 'PATCH', `${ofMaster}/close`, { reason: 'x' }],
    ['an access with an unknown field', 'POST', `${ofMaster}/access`, { actor_id: delegate, access: 'read', x: 1 }],
    ['a body of a ledger’s closing', 'PATCH', `/v1/ledgers/${ledgerId}/close`, '['],
  ];

  test.each(cases)('%s is recorded as 400 under the ledger', async (_name, verb, path, body) => {
    const { answer, requestId } = await tracked(base, verb, path, { headers: buyer.bearer, body });
    expect(answer.status).toBe(400);
    expect(shown(await historyOf(base, buyer), requestId)).toEqual([verb, path, 400, ledgerId]);
  });

  test('a body of another type and a body that is too large are recorded under the ledger of the path', async () => {
    const path = `${ofMaster}/events`;
    const typed = { ...buyer.bearer, 'content-type': 'text/plain' };
    const media = await tracked(base, 'POST', path, { headers: typed, body: '{}' });
    expect(media.answer.status).toBe(415);
    const body = ' '.repeat(limits.requestBodyMaxBytes + 1);
    const large = await tracked(base, 'POST', path, { headers: buyer.bearer, body });
    expect(large.answer.status).toBe(413);
    const [latest, before] = await historyOf(base, buyer);
    expect(latest).toMatchObject({ request_id: large.requestId, response_status: 413, ledger_id: ledgerId });
    expect(before).toMatchObject({ request_id: media.requestId, response_status: 415, ledger_id: ledgerId });
  });

  test('an invalid idempotency key is recorded under the ledger of a master in the body', async () => {
    const headers = { ...buyer.bearer, 'idempotency-key': 'x'.repeat(256) };
    const path = '/v1/delegation/master';
    const { answer, requestId } = await tracked(base, 'POST', path, { headers, body: inMaster });
    expect(answer.status).toBe(400);
    expect(shown(await historyOf(base, buyer), requestId)).toEqual(['POST', path, 400, ledgerId]);
  });

  const silent: readonly Case[] = [
    ['no id', 'POST', '/v1/delegation/ledger', { ...inLedger, ledger_id: 'x', permision: {} }],
    ['an id in capitals', 'POST', '/v1/delegation/ledger', { ledger_id: ledgerId.toUpperCase(), x: 1 }],
    ['a list of ids', 'POST', '/v1/delegation/ledger', { ledger_id: [ledgerId] }],
    ['an id further in', 'POST', '/v1/delegation/ledger', { a: { ledger_id: ledgerId } }],
    ['a list around it', 'POST', '/v1/delegation/ledger', [{ ledger_id: ledgerId }]],
    ['an id that the method does not know', 'POST', '/v1/delegation/master', { ledger_id: ledgerId }],
    ['no JSON', 'POST', '/v1/delegation/ledger', `{"ledger_id":"${ledgerId}",`],
    ['an id in the query of a body', 'POST', `/v1/delegation/ledger?ledger_id=${ledgerId}`, { x: 1 }],
  ];

  test.each(silent)('%s leaves no record', async (_name, verb, path, body) => {
    const before = await historyOf(base, buyer);
    const { answer } = await tracked(base, verb, path, { headers: buyer.bearer, body });
    expect(answer.status).toBe(400);
    expect(await historyOf(base, buyer)).toEqual(before);
  });

  test('a stranger finds the ledger that it named, and no ledger beside a master that it named', async () => {
    const others = await historyOf(base, buyer);
    const nowhere = randomUUID();
    const calls: readonly (readonly [path: string, body: object, ledger: string | null])[] = [
      ['/v1/delegation/ledger', { ...inLedger, x: 1 }, ledgerId],
      ['/v1/delegation/ledger', { ...inLedger, ledger_id: nowhere, x: 1 }, nowhere],
      ['/v1/delegation/master', { ...inMaster, x: 1 }, null],
      ['/v1/delegation/master', { ...inMaster, master_id: nowhere, x: 1 }, null],
      [`${ofMaster}/events`, { x: 1 }, null],
      [`/v1/traceledger/master/${nowhere}/events`, { x: 1 }, null],
    ];
    for (const [path, body, ledger] of calls) {
      const { requestId } = await tracked(base, 'POST', path, { headers: stranger.bearer, body });
      expect(shown(await historyOf(base, stranger), requestId)).toEqual(['POST', path, 400, ledger]);
    }
    expect(await historyOf(base, buyer)).toEqual(others);
  });
});

describe('over Connect', () => {
  const call = (name: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    tracked(base, 'POST', `/svc.v1.${name}`, { headers: { ...buyer.bearer, ...headers }, body });

  const grant = { delegateActorId: delegate, role: 'AUDITOR' };
  test.each([
    ['in camel case', 'LedgerDelegation', { ...grant, ledgerId, x: 1 }, '/v1/delegation/ledger'],
    ['in snake case', 'LedgerDelegation', { ...grant, ledger_id: ledgerId, role: 7 }, '/v1/delegation/ledger'],
    ['of a master', 'MasterDelegation', { ...grant, masterId: master.uuid, x: 1 }, '/v1/delegation/master'],
  ])('a refused body is recorded under its ledger %s', async (_name, scope, body, path) => {
    const { answer, requestId } = await call(`DelegationService/Grant${scope}`, body);
    expect(answer.status).toBe(400);
    expect(shown(await historyOf(base, buyer), requestId)).toEqual(['POST', path, 400, ledgerId]);
  });

  test('a refused append is recorded by its REST path, under the ledger', async () => {
    for (const body of [{ eventType: 'A', payload: '{' }, { eventType: 7 }]) {
      const { answer, requestId } = await call('MasterService/AppendEvent', { uuid: master.uuid, ...body });
      expect(answer.status).toBe(400);
      const event = shown(await historyOf(base, buyer), requestId);
      expect(event).toEqual(['POST', `${ofMaster}/events`, 400, ledgerId]);
    }
  });

  test('a lone surrogate in an id is refused like any other invalid id', async () => {
    const half = '\\ud800';
    const calls: readonly (readonly [name: string, body: string, path: string | null])[] = [
      ['WebhookService/DeleteWebhook', `{"id":"${half}"}`, null],
      [
        'MasterService/RevokeMasterAccess',
        `{"uuid":"${master.uuid}","linkId":"${half}"}`,
        `${ofMaster}/access/%EF%BF%BD`,
      ],
    ];
    for (const [name, body, path] of calls) {
      const { answer, requestId } = await call(name, body);
      expect([answer.status, answer.text('code')]).toEqual([400, 'invalid_argument']);
      const history = await historyOf(base, buyer);
      const verb = 'DELETE';
      expect(shown(history, requestId)).toEqual(path === null ? null : [verb, path, 400, ledgerId]);
    }
    const { requestId } = await tracked(base, 'GET', `/v1/ledgers/${ledgerId}`, { headers: buyer.bearer });
    expect((await historyOf(base, buyer)).map((event) => event.request_id)).toContain(requestId);
  });

  test.each<[string, () => [Party, string, object, readonly unknown[]]]>([
    ['a party that reads its ledger', () => [buyer, 'GetLedger', { ledgerId }, [200, ledgerId]]],
    ['a stranger that reads a ledger', () => [stranger, 'GetLedger', { ledgerId }, [404, ledgerId]]],
    ['a list with a bad limit', () => [buyer, 'ListLedgerEvents', { ledgerId, limit: 0 }, [400, ledgerId]]],
  ])('the call of %s is recorded once, by its REST method and path', async (_name, make) => {
    const [by, name, body, [status, named]] = make();
    const before = await historyOf(base, by);
    const { answer, requestId } = await call(`LedgerService/${name}`, body, by.bearer);
    expect(answer.status).toBe(status);
    const after = await historyOf(base, by);
    expect(after).toHaveLength(before.length + 1);
    const path = `/v1/ledgers/${ledgerId}${name === 'GetLedger' ? '' : '/events'}`;
    expect(shown(after, requestId)).toEqual(['GET', path, status, named]);
  });

  test('an append of a stranger is recorded under no ledger', async () => {
    const body = { uuid: master.uuid, eventType: 'A', payload: '{}' };
    const { requestId } = await call('MasterService/AppendEvent', body, stranger.bearer);
    expect(shown(await historyOf(base, stranger), requestId)).toEqual(['POST', `${ofMaster}/events`, 404, null]);
  });

  test('a message without JSON or with an unknown compression leaves no record', async () => {
    const before = await historyOf(base, buyer);
    await call('DelegationService/GrantLedgerDelegation', `{"ledgerId":"${ledgerId}"`);
    await call('DelegationService/GrantLedgerDelegation', { ledgerId }, { 'content-encoding': 'zstd' });
    expect(await historyOf(base, buyer)).toEqual(before);
  });
});

describe('over gRPC', () => {
  /** A message with bytes behind it that are none of it. */
  function broken<M extends DescMethod>(method: M, request: MessageInitShape<M['input']>, tail: readonly number[]) {
    return Buffer.concat([toBinary(method.input, create(method.input, request)), Buffer.from(tail)]);
  }
  const grantLedger = DelegationService.method.grantLedgerDelegation;
  const grantMaster = DelegationService.method.grantMasterDelegation;
  const { appendEvent } = MasterService.method;
  const appendPath = `${ofMaster}/events`;
  /** A tag of a text, its length, and less than that of it. */
  const cutOff = [0x0a, 0x7f, 0x41];
  const noTag = [0x07];

  test.each([
    ['no JSON in its payload', appendEvent, { uuid: master.uuid, eventType: 'A', payload: '{' }, appendPath],
    ['a list as its payload', appendEvent, { uuid: master.uuid, eventType: 'A', payload: '[]' }, appendPath],
    ['its end cut off', appendEvent, broken(appendEvent, { uuid: master.uuid }, cutOff), appendPath],
    ['a wrong tag', grantLedger, broken(grantLedger, { ledgerId }, noTag), '/v1/delegation/ledger'],
    [
      'a wrong tag behind a master',
      grantMaster,
      broken(grantMaster, { masterId: master.uuid }, noTag),
      '/v1/delegation/master',
    ],
  ] as const)('a message with %s is recorded under its ledger', async (name, method, request, path) => {
    const requestId = name.replaceAll(' ', '-');
    const { info } = await callGrpc(client, method, request, { ...buyer.bearer, 'x-request-id': requestId });
    expect(['invalid_argument', 'invalid_json']).toContain(info?.reason);
    expect(shown(await historyOf(base, buyer), requestId)).toEqual(['POST', path, 400, ledgerId]);
  });

  test.each<[string, Party, readonly number[]]>([
    ['a message whose id cannot be reached', buyer, [0x07]],
    ['bytes that are no message', buyer, [0xff, 0xff, 0xff, 0xff, 0xff]],
  ])('%s leaves no record', async (_name, party, head) => {
    const before = await historyOf(base, party);
    const request = Buffer.concat([Buffer.from(head), broken(grantLedger, { ledgerId }, [])]);
    const { info } = await callGrpc(client, grantLedger, request, party.bearer);
    expect(info?.reason).toBe('invalid_argument');
    expect(await historyOf(base, party)).toEqual(before);
  });

  test('a broken message of a stranger is recorded under a ledger that it names, under none for a master', async () => {
    const byMaster = broken(grantMaster, { masterId: master.uuid }, noTag);
    await callGrpc(client, grantMaster, byMaster, { ...stranger.bearer, 'x-request-id': 'master' });
    expect(shown(await historyOf(base, stranger), 'master')).toEqual(['POST', '/v1/delegation/master', 400, null]);
    const byLedger = broken(grantLedger, { ledgerId }, noTag);
    await callGrpc(client, grantLedger, byLedger, { ...stranger.bearer, 'x-request-id': 'ledger' });
    expect(shown(await historyOf(base, stranger), 'ledger')).toEqual(['POST', '/v1/delegation/ledger', 400, ledgerId]);
  });
});
