import type { DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { parseJson } from '../../../../src/domain/json/json.ts';
import { ListNetworkActorsResponseSchema } from '../../../../src/gen/svc/v1/actors_pb.ts';
import { EventSchema } from '../../../../src/gen/svc/v1/event_pb.ts';
import { type RestRoute, restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { requestReader } from '../../../../src/rpc/rest/decode.ts';
import { parametersOf } from '../../../../src/rpc/rest/query.ts';

interface Sent {
  readonly pathParams?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: string;
}

function read(name: string, sent: Sent = {}): unknown {
  const route = restRoutes().find((candidate) => candidate.method.name === name);
  if (!route) throw new Error(`No route for ${name}`);
  const body = sent.body === undefined || sent.body === '' ? null : parseJson(sent.body);
  const parameters = parametersOf(sent.query ?? '');
  return requestReader(route)({ pathParams: sent.pathParams ?? {}, parameters, body });
}

function expectRefused(action: () => unknown, field: unknown, expected: unknown = expect.anything()): void {
  expect(action).toThrow(LedgerError);
  expect(action).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field, expected } }));
}

const grant = { organization_id: 'o', delegate_actor_id: 'd', role: 'OPS' };

describe('a request body', () => {
  it('becomes the message, with the fields of the path', () => {
    const body = '{"event_type":"A","payload":{"b":1.0,"a":"x"}}';
    expect(read('AppendEvent', { pathParams: { uuid: 'm' }, body })).toMatchObject({
      $typeName: 'svc.v1.AppendEventRequest',
      uuid: 'm',
      eventType: 'A',
      payload: '{"a":"x","b":1}',
    });
  });

  it('keeps JSON objects as canonical text, hostile keys included', () => {
    const body = '{"event_type":"A","payload":{"__proto__":{"x":1},"constructor":2,"\\u0061":3}}';
    expect(read('AppendEvent', { body })).toMatchObject({ payload: '{"__proto__":{"x":1},"a":3,"constructor":2}' });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it('tells an absent field from an empty one', () => {
    const absent = read('GrantOrganizationDelegation', { body: JSON.stringify(grant) }) as { permissions?: string };
    expect(absent.permissions).toBeUndefined();
    expect(read('GrantOrganizationDelegation', { body: JSON.stringify({ ...grant, permissions: {} }) })).toMatchObject({
      permissions: '{}',
    });
    expect((read('SetArlGate', { body: '{}' }) as { requireArl?: boolean }).requireArl).toBeUndefined();
    expect(read('SetArlGate', { body: '{"require_arl":false}' })).toMatchObject({ requireArl: false });
  });

  it('reads null for an optional field as absent', () => {
    const body = JSON.stringify({ ...grant, permissions: null });
    expect((read('GrantOrganizationDelegation', { body }) as { permissions?: string }).permissions).toBeUndefined();
    expect(read('CreateWebhook', { body: '{"url":"u","event_types":null}' })).toMatchObject({ eventTypes: [] });
  });

  it('refuses null for any other field', () => {
    const body = JSON.stringify({ ...grant, role: null });
    expectRefused(() => read('GrantOrganizationDelegation', { body }), 'role', 'a string');
    expectRefused(() => read('AppendEvent', { body: '{"payload":null}' }), 'payload', 'a JSON object');
  });

  it('refuses a misspelt field by name and lists the valid ones', () => {
    const body = JSON.stringify({ ...grant, permisions: { access: 'read' } });
    const refused = () => read('GrantOrganizationDelegation', { body });
    expectRefused(refused, 'permisions', 'one of organization_id, delegate_actor_id, role, permissions');
    expect(refused).toThrow('"permisions"');
  });

  it.each(['__proto__', 'constructor', 'toString', 'organizationId', 'ORGANIZATION_ID', '', '$typeName'])(
    'refuses the field %j',
    (name) => {
      const body = `{${JSON.stringify(name)}:"x"}`;
      expectRefused(() => read('GrantOrganizationDelegation', { body }), name);
    },
  );

  it('refuses a field of the path', () => {
    expectRefused(() => read('AppendEvent', { pathParams: { uuid: 'm' }, body: '{"uuid":"other"}' }), 'uuid');
  });

  it('cuts a very long unknown name short', () => {
    const refused = () => read('CreateActor', { body: `{"${'x'.repeat(100_000)}":1}` });
    expectRefused(refused, expect.stringMatching(/^.{1,199}$/));
    expect(refused).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.{1,299}$/) }));
  });

  it.each([
    ['CreateActor', '{"role":1}', 'role', 'a string'],
    ['CreateActor', '{"role":["PARTICIPANT"]}', 'role', 'a string'],
    ['CreateActor', '{"role":{}}', 'role', 'a string'],
    ['SetArlGate', '{"require_arl":"true"}', 'require_arl', 'true or false'],
    ['SetArlGate', '{"require_arl":1}', 'require_arl', 'true or false'],
    ['AppendEvent', '{"payload":"{}"}', 'payload', 'a JSON object'],
    ['AppendEvent', '{"payload":[]}', 'payload', 'a JSON object'],
    ['OnboardEntity', '{"metadata":"x"}', 'metadata', 'a JSON object'],
    ['OnboardEntity', '{"metadata":[{}]}', 'metadata', 'a JSON object'],
    ['CreateWebhook', '{"event_types":"A"}', 'event_types', 'an array'],
    ['CreateWebhook', '{"event_types":{"0":"A"}}', 'event_types', 'an array'],
    ['CreateWebhook', '{"event_types":["A",null]}', 'event_types[1]', 'a string'],
    ['CreateWebhook', '{"event_types":[["A"]]}', 'event_types[0]', 'a string'],
  ])('%s refuses %s', (name, body, field, expected) => {
    expectRefused(() => read(name, { body }), field, expected);
  });

  it.each(['[]', '"x"', '1', 'true'])('%s is refused as a body', (body) => {
    expectRefused(() => read('CreateActor', { body }), 'body', 'a JSON object');
    expectRefused(() => read('CloseLedger', { body }), 'body', 'a JSON object');
  });

  it('may be empty, null or {} if the method has no body fields', () => {
    const plain = read('CloseLedger', { pathParams: { ledger_id: 'l' } });
    expect(plain).toMatchObject({ ledgerId: 'l' });
    for (const body of ['', 'null', '{}', ' {} ']) {
      expect(read('CloseLedger', { pathParams: { ledger_id: 'l' }, body })).toEqual(plain);
    }
    expectRefused(() => read('CloseLedger', { body: '{"status":"CLOSED"}' }), 'status', 'no fields');
  });

  it('may be empty if every field is optional, but not null', () => {
    expect(read('CreateActor')).toEqual(read('CreateActor', { body: '{}' }));
    expectRefused(() => read('CreateActor', { body: 'null' }), 'body');
  });

  it('is ignored if a method takes its fields from the query', () => {
    expect(read('ListLedgers', { query: 'status=OPEN', body: '{"status":1}' })).toMatchObject({ status: 'OPEN' });
  });

  it('does not take fields from the query', () => {
    expect((read('CreateActor', { query: 'role=X', body: '{}' }) as { role?: string }).role).toBeUndefined();
  });
});

/** Reads a body as a message that is a request of no method. */
function readAs(input: DescMessage, body: string): unknown {
  const [route] = restRoutes();
  if (!route) throw new Error('there are no routes');
  const made = { ...route, pathParams: [], hasBody: true, method: { ...route.method, input } } as RestRoute;
  return requestReader(made)({ pathParams: {}, parameters: [], body: parseJson(body) });
}

describe('numbers of a body', () => {
  it('are read up to the largest that JSON can say', () => {
    expect(readAs(ListNetworkActorsResponseSchema, '{"count":2}')).toMatchObject({ count: 2 });
    expect(readAs(EventSchema, '{"seq":9007199254740991}')).toMatchObject({ seq: 9007199254740991n });
  });

  it.each(['1.5', '2147483648', '-2147483649', '"1"', 'true'])('%s is refused as a 32-bit integer', (count) => {
    expectRefused(() => readAs(ListNetworkActorsResponseSchema, `{"count":${count}}`), 'count');
  });

  it.each(['0.5', '1e300', '9007199254740992', '"7"'])('%s is refused as an integer', (seq) => {
    expectRefused(() => readAs(EventSchema, `{"seq":${seq}}`), 'seq', 'an integer');
  });
});

describe('a query', () => {
  it('becomes typed fields, and unknown parameters are ignored', () => {
    const query =
      'limit=1000&from_seq=9007199254740991&event_type=A%20B&api_key=svc_sk_test_x&x=%zz&order=desc&&=&%zz=1';
    expect(read('ListLedgerEvents', { pathParams: { ledger_id: 'l' }, query })).toMatchObject({
      ledgerId: 'l',
      limit: 1000,
      fromSeq: 9007199254740991n,
      eventType: 'A B',
      order: 'desc',
    });
  });

  it('leaves absent the fields that it does not have', () => {
    const request = read('ListLedgerEvents') as Record<string, unknown>;
    for (const name of ['limit', 'offset', 'cursor', 'fromSeq', 'verify']) expect(request[name]).toBeUndefined();
  });

  it('cannot set a field of the path', () => {
    expect(read('GetLedger', { pathParams: { ledger_id: 'l' }, query: 'ledger_id=other' })).toMatchObject({
      ledgerId: 'l',
    });
  });

  it('reads a plus sign as a space, and an encoded one as a plus sign', () => {
    expect(read('ListEntities', { query: 'display_name=Loom+7&unique_id=a%2Bb' })).toMatchObject({
      displayName: 'Loom 7',
      uniqueId: 'a+b',
    });
  });

  it('reads only true and false as booleans', () => {
    expect(read('ListActorKeys', { query: 'include_revoked=true' })).toMatchObject({ includeRevoked: true });
    expect(read('ListActorKeys', { query: 'include_revoked=false' })).toMatchObject({ includeRevoked: false });
    for (const value of ['1', 'TRUE', 'yes', '']) {
      const query = `include_revoked=${value}`;
      expectRefused(() => read('ListActorKeys', { query }), 'include_revoked', 'true or false');
    }
  });

  const malformed = ['', ...'abc 1.0 1e3 0x10 +5 %205 01 -0 2147483648 99999999999999999999 NaN ５'.split(' ')];
  it.each(malformed)('limit=%s is refused', (value) => {
    expectRefused(() => read('ListLedgers', { query: `limit=${value}` }), 'limit', 'a 32-bit integer');
  });

  it('leaves bounds to the service', () => {
    expect(read('ListLedgers', { query: 'limit=-1&offset=100001' })).toMatchObject({ limit: -1, offset: 100001 });
  });

  it.each(['from_seq=9007199254740993', 'from_seq=', 'from_seq=1.5', 'from_seq'])('%s is refused', (query) => {
    expectRefused(() => read('ListLedgerEvents', { query }), 'from_seq', 'an integer');
  });

  it('may give each parameter once', () => {
    expectRefused(() => read('ListLedgers', { query: 'limit=1&limit=2' }), 'limit', 'given once');
    expectRefused(() => read('ListLedgers', { query: 'status=OPEN&%73tatus=CLOSED' }), 'status', 'given once');
  });

  it('with broken percent-encoding of a known parameter is refused', () => {
    expectRefused(() => read('ListLedgers', { query: 'status=%FF' }), 'status', 'percent-encoded UTF-8');
  });

  it('with hostile names sets nothing', () => {
    expect(read('ListLedgers', { query: '__proto__=1&constructor=2&$typeName=x&ledgerType=ORDER' })).toEqual(
      read('ListLedgers'),
    );
  });
});
