import { describe, expect, it } from 'vitest';
import { type ClientOptions, createClient, signerFromPrivateKey } from '../../../src/client/index.ts';
import { against, answer, failure, key, ledger } from '../../support/answering-service.ts';

describe('a call', () => {
  it('carries the API key, JSON, and a new idempotency key', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    const made = { keyId: 'k', apiKey: 's', environment: 'sandbox', name: 'n' };
    expect(await client.createApiKey({ name: 'n' })).toEqual(made);
    await client.createApiKey({ name: 'n' });
    const [first, second] = seen;
    expect(first).toMatchObject({ method: 'POST', url: '/v1/developer/keys', body: '{"name":"n"}' });
    expect(first?.headers).toMatchObject({ authorization: 'Bearer svc_sk_test_x', 'content-type': 'application/json' });
    expect(first?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.headers['idempotency-key']).not.toBe(first?.headers['idempotency-key']);
  });

  it('carries no idempotency key and no body if it reads', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, { ...ledger }));
    expect(await client.getLedger({ ledgerId: 'l' })).toMatchObject({ buyerOrganizationId: null, entityId: null });
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/v1/ledgers/l', body: '' });
    expect(seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  it('sends no credential if it needs none', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, { version: '1.0', text: 'x' }));
    await client.getTerms();
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
  });

  it('resolves to undefined for 204', async () => {
    const { client, seen } = await against((_, response) => answer(response, 204, null));
    expect(await client.revokeActorKey({ actorId: 'a', kid: 'svc:actor:a#key-1', reason: 'lost' })).toBeUndefined();
    expect(seen[0]).toMatchObject({
      url: '/v1/actors/a/keys/svc%3Aactor%3Aa%23key-1/revoke',
      body: '{"reason":"lost"}',
    });
  });

  it('has a list in its answer under its name', async () => {
    const { client } = await against((_, response) => answer(response, 200, []));
    expect(await client.listActorKeys({ actorId: 'a', includeRevoked: true })).toEqual({ keys: [] });
  });

  it('is refused before it is sent by the rules that it shares with the service', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    const refused = { name: 'LedgerTrustError', code: 'invalid_string', status: null };
    const event = { uuid: 'u', eventType: 'E', payload: { note: '\ud800' } };
    await expect(client.appendEvent(event)).rejects.toMatchObject(refused);
    expect(seen).toEqual([]);
  });

  it('uses the path of the base URL', async () => {
    const { client, seen, baseUrl } = await against((_, response) => answer(response, 200, { version: '1', text: '' }));
    await using below = createClient({ baseUrl: `${baseUrl}/trust/` });
    await below.getTerms();
    await client.getTerms();
    expect(seen.map(({ url }) => url)).toEqual(['/trust/v1/legal/terms', '/v1/legal/terms']);
  });

  it.each(['https://user@ledger.example', 'https://:secret@ledger.example', 'https://ledger.example/?a', 'file:///x'])(
    'has no client with the base URL %s',
    (baseUrl) => {
      expect(() => createClient({ baseUrl })).toThrow(TypeError);
    },
  );

  it('reports request id, replay and attempts of its answer', async () => {
    const replayed = { 'idempotent-replayed': 'true' };
    const { client } = await against((_, response) => answer(response, 200, key, replayed));
    const told: unknown[] = [];
    await client.createApiKey({ name: 'n' }, { onAnswer: (facts) => told.push(facts) });
    expect(told).toEqual([{ requestId: 'r-1', replayed: true, attempts: 1 }]);
  });

  it.each([
    ['a misspelt field', { name: 'n', nmae: 'm' }, {}],
    ['a delivery chain, unless it appends', { name: 'n' }, { deliveryChain: [] }],
  ])('is not sent with %s', async (_, request, options) => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    await expect(client.createApiKey(request, options)).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
  });
});

describe('an error', () => {
  it('has the code, message, details, request id and status of the envelope', async () => {
    const error = failure('not_found', { field: 'ledger_id' });
    const { client } = await against((_, response) => answer(response, 404, error));
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({
      name: 'LedgerTrustError',
      code: 'not_found',
      message: 'It is not_found.',
      details: { field: 'ledger_id' },
      requestId: 'r-1',
      status: 404,
    });
  });

  it('names what the service cut because it was too long', async () => {
    const body = { error: { ...failure('not_found', {}).error, cut: ['message', 'field'] } };
    const { client } = await against((_, response) => answer(response, 404, body));
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({ cut: ['message', 'field'] });
  });

  it('of an answer that cannot be read names the field, the status and the request', async () => {
    const { client } = await against((_, response) => answer(response, 200, { ...ledger, status: 7 }));
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({
      code: 'invalid_answer',
      details: { field: 'GetLedgerResponse.status', expected: 'a string' },
      requestId: 'r-1',
      status: 200,
    });
  });

  const strangers: [string, number, string, string][] = [
    ['an error page', 400, '<html>', 'invalid_answer'],
    ['another API’s error', 403, '{"message":"no"}', 'invalid_answer'],
    ['a redirect', 302, '', 'invalid_answer'],
    ['a page with status 200', 200, '<html>', 'invalid_answer'],
    ['another object', 200, '{"ok":true}', 'invalid_answer'],
    ['a gateway’s page', 502, '<html>', 'connection_lost'],
  ];
  it.each(strangers)('reports %s (%i) as no answer of this API', async (_, status, body, code) => {
    const { client, seen } = await against(
      (_, response) => {
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body);
      },
      { attemptsMax: 1 },
    );
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({ code, status });
    expect(seen).toHaveLength(1);
  });

  it('reports that nothing was sent to an address without a listener', async () => {
    await using nobody = createClient({ baseUrl: 'http://127.0.0.1:1', attemptsMax: 1 });
    const lost = { code: 'connection_lost', details: { sent: false }, status: null };
    await expect(nobody.getHealth()).rejects.toMatchObject(lost);
  });
});

describe('an entity', () => {
  const entity = { actorId: '0193a000-0000-7000-8000-00000000000e', actorType: 'device' } as const;
  const gate = { require_arl: true, updated_at: 't' };

  it('identifies itself by headers alone without keys', async () => {
    const options = { apiKey: undefined, entity } as object;
    const { client, seen } = await against((_, response) => answer(response, 200, gate), options);
    await client.setArlGate({ requireArl: true });
    expect(seen[0]?.headers).toMatchObject({ 'x-actor-id': entity.actorId, 'x-actor-type': 'device' });
    expect(seen[0]?.headers).not.toHaveProperty('x-actor-sig');
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
  });

  it('signs each attempt anew with a signer, under the same idempotency key', async () => {
    let now = Date.parse('2026-11-21T02:06:39.000Z');
    const options = {
      apiKey: undefined,
      entity,
      signer: signerFromPrivateKey(Buffer.alloc(32, 1), 'kid'),
      now: () => now++,
    };
    const { client, seen } = await against(
      (_, response, count) =>
        count === 1 ? answer(response, 503, failure('unavailable')) : answer(response, 200, gate),
      options as object,
    );
    await client.setArlGate({ requireArl: true });
    expect(seen.map(({ headers }) => headers['x-timestamp'])).toEqual([
      '2026-11-21T02:06:39.000Z',
      '2026-11-21T02:06:39.001Z',
    ]);
    expect(new Set(seen.map(({ headers }) => headers['x-actor-sig'])).size).toBe(2);
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(seen[0]?.headers['x-signing-key-id']).toBe('kid');
  });
});

describe('options that cannot work', () => {
  const wrong: [string, ClientOptions][] = [
    ['no address', {}],
    ['gRPC without its address', { baseUrl: 'http://x', transport: 'grpc' }],
    ['another scheme', { baseUrl: 'ftp://x' }],
    ['a password in the URL', { baseUrl: 'http://u:p@x' }],
    ['a query in the URL', { baseUrl: 'http://x/?k=1' }],
    ['a path in the gRPC address', { grpcUrl: 'http://x/y', transport: 'grpc' }],
    ['two credentials', { baseUrl: 'http://x', apiKey: 'k', entity: { actorId: 'a', actorType: 'device' } }],
    ['a line break in the API key', { baseUrl: 'http://x', apiKey: 'k\nx' }],
  ];
  it.each(wrong)('%s are refused', (_, options) => {
    expect(() => createClient(options)).toThrow(TypeError);
  });

  it('an append stream without a gRPC address is refused', async () => {
    await using client = createClient({ baseUrl: 'http://127.0.0.1:1' });
    expect(() => client.appendStream()).toThrow(TypeError);
  });
});
