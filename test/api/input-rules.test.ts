import type { DescMethod } from '@bufbuild/protobuf';
import { afterAll, describe, expect, test } from 'vitest';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from '../support/door-grpc.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { eventsOf, newKeyPair } from '../support/parties.ts';
import { expectRefused, type Fields, rest } from '../support/parties-rest.ts';

/** Parties without keys: input is checked before signatures, and here nothing else is. */
const { node, base, order, master } = await nodeWithMaster({ keyed: false });
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());

/** The same payload text through REST, Connect and gRPC: the code at each, or `ok` and what was stored. */
async function everywhere(payload: string, eventType = 'NOTED'): Promise<string[]> {
  const codes: string[] = [];
  const path = `/v1/traceledger/master/${master.uuid}/events`;
  const body = `{"event_type":${JSON.stringify(eventType)},"payload":${payload}}`;
  codes.push((await rest(base, 'POST', path, { headers: order.buyer.bearer, body })).code ?? 'ok');
  const connect = await fetch(`${base}/svc.v1.MasterService/AppendEvent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...order.buyer.bearer },
    body: `{"uuid":"${master.uuid}","eventType":${JSON.stringify(eventType)},"payload":${JSON.stringify(payload)}}`,
  });
  const answer = (await connect.json()) as { details?: { debug?: { reason?: string } }[] };
  codes.push(connect.ok ? 'ok' : String(answer.details?.[0]?.debug?.reason));
  const method: DescMethod = MasterService.method.appendEvent;
  const { info, error } = await callGrpc(grpc, method, { uuid: master.uuid, eventType, payload }, order.buyer.bearer);
  codes.push(error === null ? 'ok' : String(info?.reason));
  return codes;
}

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

describe('a payload, through all three doors', () => {
  test.each([
    ['{"a":1,"a":2}', 'duplicate_key'],
    ['{"a":1,"\\u0061":2}', 'duplicate_key'],
    ['{"x":{"__proto__":1,"__proto__":2}}', 'duplicate_key'],
    ['{"a":9007199254740993}', 'unsafe_number'],
    ['{"a":1e400}', 'unsafe_number'],
    ['{"a":1e-400}', 'unsafe_number'],
    ['{"a":0.1000000000000000000001}', 'unsafe_number'],
    ['{"a":"\\ud800"}', 'invalid_string'],
    ['{"\\udfff":1}', 'invalid_string'],
    ['[]', 'invalid_argument'],
    ['null', 'invalid_argument'],
    ['"text"', 'invalid_argument'],
    ['{"caused_by_hash":"x"}', 'invalid_argument'],
    ['{"delivery_chain":[]}', 'reserved_field'],
    ['{"business_ref":"other"}', 'reserved_field'],
    [deep(70), 'too_deep'],
    [deep(10_000), 'too_deep'],
    [JSON.stringify({ text: 'x'.repeat(262_140) }), 'payload_too_large'],
  ])('%.40s is %s', async (payload, code) => {
    expect(await everywhere(payload)).toEqual([code, code, code]);
  });

  test.each([
    'GENESIS',
    'ORDER_OPENED',
    'LEDGER_CLOSED',
    'ORGANIZATION_REGISTERED',
    'TRACELEDGER_MASTER_CREATED',
    'MASTER_CLOSED',
    'SUPPLIER_DELEGATION_GRANTED',
    'SUPPLIER_DELEGATION_REVOKED',
    'LEDGER_DELEGATION_GRANTED',
    'LEDGER_DELEGATION_REVOKED',
    'MASTER_DELEGATION_GRANTED',
    'MASTER_DELEGATION_REVOKED',
    'PING',
  ])('under %s is the service’s own', async (type) =>
    expect(await everywhere('{}', type)).toEqual(Array(3).fill('reserved_event_type')),
  );

  test.each(['', '9A', 'A B', 'A\u0000B', 'Ä', 'a'.repeat(129), '_A', 'A\nB'])(
    'under %j has no event type',
    async (type) => {
      expect(await everywhere('{}', type)).toEqual(Array(3).fill('invalid_argument'));
    },
  );

  test.each(['a', 'Z.9:x-_', 'a'.repeat(128), 'ping', 'genesis'])('under %.20s is taken', async (type) => {
    expect(await everywhere('{}', type)).toEqual(['ok', 'ok', 'ok']);
  });

  test('is stored with its numbers as they were meant, and no text is changed', async () => {
    const payload =
      '{"a":1.10,"b":1E2,"c":333333333.33333329,"d":-0,"e":"\\u00e9\\ud83d\\ude00","__proto__":{"x":1},"constructor":1,"n":9007199254740991}';
    expect(await everywhere(payload, 'KEPT')).toEqual(['ok', 'ok', 'ok']);
    const events = await rest(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?event_type=KEPT`, {
      headers: order.buyer.bearer,
    });
    const stored = '"a":1.1,"b":100,';
    expect(events.rows('events')).toHaveLength(3);
    expect(events.raw.split(stored)).toHaveLength(4);
    expect(events.raw.split('"__proto__":{"x":1}')).toHaveLength(4);
    expect(events.raw.split('"d":0,"e":"é😀","n":9007199254740991')).toHaveLength(4);
  });

  test('of 256 KiB is taken, one byte more is not', async () => {
    const text = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
    expect(await everywhere(text(262_144), 'FULL')).toEqual(['ok', 'ok', 'ok']);
    expect(await everywhere(text(262_145), 'FULL')).toEqual(Array(3).fill('payload_too_large'));
  });
});

describe('fields of requests', () => {
  const nul = 'a\u0000b';
  const cases: [string, string, Fields, string][] = [
    ['POST', '/v1/developer/register', { name: 'A', email: 'a@b.de', region: 'us' }, 'region'],
    ['POST', '/v1/developer/register', { name: '', email: 'a@b.de', region: 'eu' }, 'name'],
    ['POST', '/v1/developer/register', { name: 'x'.repeat(257), email: 'a@b.de', region: 'eu' }, 'name'],
    ['POST', '/v1/developer/register', { name: nul, email: 'a@b.de', region: 'eu' }, 'name'],
    ['POST', '/v1/developer/register', { name: 'A', region: 'eu' }, 'email'],
    ['POST', '/v1/developer/register', { name: 'A', email: 'a@b.de', region: 'eu', admin: true }, 'admin'],
    ['POST', '/v1/developer/register', { name: 7, email: 'a@b.de', region: 'eu' }, 'name'],
    ['POST', '/v1/developer/register', { name: null, email: 'a@b.de', region: 'eu' }, 'name'],
    ['POST', '/v1/actors', { role: '9' }, 'role'],
    ['POST', '/v1/actors', { role: 'x'.repeat(65) }, 'role'],
    ['POST', '/v1/actors', { actor_id: 'mine' }, 'actor_id'],
    ['POST', '/v1/entities/onboard', { display_name: 'A', entity_type: 'M-1/x', unique_id: 'x' }, 'entity_type'],
    ['POST', '/v1/entities/onboard', { display_name: 'A', entity_type: 'M' }, 'unique_id'],
    ['POST', '/v1/entities/onboard', { display_name: 'A', entity_type: 'M', unique_id: 'x', metadata: [] }, 'metadata'],
    [
      'POST',
      '/v1/entities/onboard',
      { display_name: 'A', entity_type: 'M', unique_id: 'x', metadata: 'x' },
      'metadata',
    ],
    [
      'POST',
      '/v1/entities/onboard',
      { display_name: 'A', entity_type: 'M', unique_id: 'x', owner_actor_id: 'X' },
      'owner_actor_id',
    ],
    ['POST', '/v1/developer/keys', {}, 'name'],
    ['POST', '/v1/developer/keys', { name: ['a'] }, 'name'],
    ['POST', '/v1/engagements', { counterparty_actor_id: 'x', purpose: 'SERVICE' }, 'counterparty_actor_id'],
    ['POST', '/v1/traceledger/master', { ledger_id: 'X', business_ref: 'a', scope: 'ORDER' }, 'ledger_id'],
    [
      'POST',
      '/v1/traceledger/master',
      { ledger_id: '0199AAAA-0000-7000-8000-000000000001', business_ref: 'a', scope: 'ORDER' },
      'ledger_id',
    ],
    [
      'POST',
      '/v1/traceledger/master',
      { ledger_id: '0199aaaa-0000-7000-8000-000000000001', business_ref: '', scope: 'ORDER' },
      'business_ref',
    ],
    [
      'POST',
      '/v1/traceledger/master',
      { ledger_id: '0199aaaa-0000-7000-8000-000000000001', business_ref: 'a', scope: '' },
      'scope',
    ],
    [
      'POST',
      '/v1/delegation/ledger',
      { ledger_id: '0199aaaa-0000-7000-8000-000000000001', delegate_actor_id: '0199aaaa-0000-7000-8000-000000000001' },
      'role',
    ],
    // Fields come before what the caller may see or do.
    ['PATCH', '/v1/entities/arl-gate', {}, 'require_arl'],
    ['PATCH', '/v1/actors/0199aaaa-0000-7000-8000-000000000001/keys/key-1/revoke', { reason: '' }, 'reason'],
    [
      'POST',
      '/v1/actors/0199aaaa-0000-7000-8000-000000000001/keys',
      { public_key: newKeyPair().publicKey, algorithm: 'RSA' },
      'algorithm',
    ],
    ['POST', '/v1/traceledger/master/0199aaaa-0000-7000-8000-000000000001/events', { event_type: 'A' }, 'payload'],
  ];

  test.each(cases)('%s %s %j: the field is named', async (method, path, body, field) => {
    const answer = await rest(base, method, path, { headers: order.buyer.bearer, body });
    expectRefused(answer, 400, 'invalid_argument');
    expect(answer.body.error).toMatchObject({ details: { field } });
  });

  test('a key that is none is refused before it is looked whose it would be', async () => {
    const path = '/v1/actors/0199aaaa-0000-7000-8000-000000000001/keys';
    const answer = await rest(base, 'POST', path, { headers: order.buyer.bearer, body: { public_key: 'AAAA' } });
    expectRefused(answer, 400, 'invalid_public_key');
  });

  test('a payload left out at the gRPC door is a field, not broken JSON', async () => {
    const method: DescMethod = MasterService.method.appendEvent;
    const { info } = await callGrpc(grpc, method, { uuid: master.uuid, eventType: 'A' }, order.buyer.bearer);
    expect(info?.reason).toBe('invalid_argument');
    expect(JSON.parse(info?.metadata.details ?? '{}')).toMatchObject({ field: 'payload' });
  });

  test.each(['buyer_svc_id', 'supplier_svc_id', 'buyer_actor_id', 'supplier_actor_id'])(
    'who names itself as the other side in %s is told of that field',
    async (field) => {
      const { actorId, svcId, bearer } = order.buyer;
      const body = { [field]: field.endsWith('_svc_id') ? svcId : actorId };
      const answer = await rest(base, 'POST', '/v1/ledgers', { headers: bearer, body });
      expectRefused(answer, 400, 'invalid_argument');
      expect(answer.body.error).toMatchObject({ details: { field } });
    },
  );

  test('two scopes at once: the one too many is named', async () => {
    const path = `/v1/delegation/snapshot?ledger_id=${order.ledgerId}&master_id=${master.uuid}`;
    const answer = await rest(base, 'GET', path, { headers: order.buyer.bearer });
    expectRefused(answer, 400, 'invalid_argument');
    expect(answer.body.error).toMatchObject({ details: { field: 'master_id' } });
  });

  test('an engagement’s purpose is a label', async () => {
    const body = { counterparty_actor_id: order.supplier.actorId, purpose: '!' };
    const answer = await rest(base, 'POST', '/v1/engagements', { headers: order.buyer.bearer, body });
    expect(answer.body.error).toMatchObject({ code: 'invalid_argument', details: { field: 'purpose' } });
  });

  test('names of 256 characters count characters, not bytes', async () => {
    const register = (name: string) =>
      rest(base, 'POST', '/v1/developer/register', { body: { name, email: 'a@b.de', region: 'eu' } });
    expect((await register('界'.repeat(256))).status).toBe(200);
    expect((await register('😀'.repeat(256))).status).toBe(200);
    expect((await register('😀'.repeat(257))).status).toBe(400);
  });

  test('where no body is asked for, none, null and {} are alike, and a field is refused', async () => {
    const close = (body: unknown) =>
      rest(base, 'PATCH', `/v1/traceledger/master/0199aaaa-0000-7000-8000-000000000001/close`, {
        headers: order.buyer.bearer,
        body,
      });
    for (const body of [undefined, 'null', '{}', {}]) expectRefused(await close(body), 404, 'not_found');
    expectRefused(await close({ force: true }), 400, 'invalid_argument');
    expectRefused(await close('['), 400, 'invalid_json');
    expectRefused(await close('[]'), 400, 'invalid_argument');
  });
});

test('nothing of what was refused stands in the ledger', async () => {
  const events = await eventsOf(base, order.supplier, order.ledgerId);
  const types = new Set(events.map((event) => event.event_type));
  expect(
    [...types].filter(
      (type) =>
        ![
          'GENESIS',
          'ORDER_OPENED',
          'TRACELEDGER_MASTER_CREATED',
          'KEPT',
          'FULL',
          'a',
          'Z.9:x-_',
          'a'.repeat(128),
          'ping',
          'genesis',
        ].includes(String(type)),
    ),
  ).toEqual([]);
});
