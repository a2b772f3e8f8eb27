import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { actorId, bearer, ledgerId, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';

let seen: { request: object; call: Call } | null = null;

const node = await listeningNodeForTests({
  grpc: false,
  corsOrigins: ['https://app.example.com'],
  handlers: {
    'HealthService.GetHealth': async () => ({ status: 'ok', db: [{ name: 'memory', status: 'ok' }] }),
    'HealthService.GetTerms': async () => {
      throw new TypeError('secret detail at host db-7');
    },
    'ResolverService.GetAuthority': async (_request, call) => {
      call.setHeader('etag', '"abc"');
      call.setHeader('cache-control', 'public, max-age=60');
      return { id: 'svc:authority', algorithm: 'Ed25519', phase: '1' };
    },
    'MasterService.AppendEvent': async (request: object, call) => {
      seen = { request, call };
      return { traceledgerMasterUuid: masterId, ledgerId, status: 'recorded', seq: 7n, masterSeq: 2n };
    },
    'MasterService.ListMasters': async () => ({ ledgerId, count: 0, masters: [] }),
    'DeveloperService.RevokeApiKey': async () => ({}),
    'LedgerService.GetLedger': async () => {
      throw new LedgerError('access_expired', 'Your access has run out.', { link_id: 'x' });
    },
    'SandboxService.RunSandbox': async function* () {
      yield { line: '✓ one' };
      yield { line: '✓ two' };
    },
  },
});

const get = (path: string, init: RequestInit = {}) => fetch(node.base + path, init);
const post = (path: string, body: string | undefined, headers: Record<string, string> = {}) =>
  fetch(node.base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  });
const eventsPath = `/v1/traceledger/master/${masterId}/events`;
const event = '{"event_type":"X","payload":{"b":1,"a":[1.0]}}';

async function envelope(response: Response) {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const { error } = (await response.json()) as {
    error: { code: string; message: string; request_id: string; details?: Record<string, unknown> };
  };
  expect(error.request_id).toBe(response.headers.get('x-request-id'));
  expect(error.message).not.toBe('');
  return error;
}

describe('REST answers', () => {
  it('a success is 200 JSON with a request id', async () => {
    const response = await get('/v1/health');
    const health = { status: 'ok', db: [{ name: 'memory', status: 'ok' }] };
    expect([response.status, await response.json()]).toEqual([200, health]);
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('paths at the root of the host and with a trailing slash are served', async () => {
    for (const path of ['/health', '/v1/health/', '/.well-known/svc-authority'])
      expect((await get(path)).status).toBe(200);
  });

  it('a valid request id is echoed, and any other is replaced', async () => {
    const answered = async (id: string) =>
      (await get('/health', { headers: { 'x-request-id': id } })).headers.get('x-request-id');
    expect(await answered('abc-1._Z')).toBe('abc-1._Z');
    expect(await answered('has space')).toMatch(/^[0-9a-f-]{36}$/);
    expect(await answered('x'.repeat(129))).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('an answer without fields is 204 without a body', async () => {
    const response = await get('/v1/developer/keys/k', { method: 'DELETE', headers: bearer });
    expect([response.status, await response.text()]).toEqual([204, '']);
  });

  it('HEAD has the headers of GET and no body', async () => {
    const response = await get('/v1/health', { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '54', '']);
  });

  it('HEAD of a stream does not run it', async () => {
    const response = await get('/v1/sandbox/run', { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  it('a known ETag is answered with 304, and an unknown one in full', async () => {
    const path = '/v1/.well-known/svc-authority';
    const known = await get(path, { headers: { 'if-none-match': '"zzz", W/"abc"' } });
    const headers = [known.headers.get('etag'), known.headers.get('cache-control')];
    expect([known.status, ...headers]).toEqual([304, '"abc"', 'public, max-age=60']);
    expect((await get(path, { headers: { 'if-none-match': '"zzz"' } })).status).toBe(200);
  });

  it('payloads reach the handler in canonical form, with their parsed form beside them', async () => {
    const signature = { 'x-actor-sig': 's', 'x-signing-key-id': 'k' };
    const headers = { ...bearer, ...signature, 'x-delivery-chain': '[]', 'x-actor-type': 'human' };
    const response = await post(eventsPath, event, headers);
    expect([response.status, ((await response.json()) as { seq: number }).seq]).toEqual([200, 7]);
    expect(seen?.request).toMatchObject({ uuid: masterId, eventType: 'X', payload: '{"a":[1],"b":1}' });
    expect(seen?.call.takeJson('payload')?.kind).toBe('object');
    expect(seen?.call).toMatchObject({
      signature: { keyId: 'k', signature: 's' },
      deliveryChain: '[]',
      caller: { actorType: 'human' },
    });
  });

  it('a stream is sent as lines, or as server-sent events if the caller accepts them', async () => {
    expect(await (await get('/v1/sandbox/run')).text()).toBe('✓ one\n✓ two\n');
    const events = await get('/v1/sandbox/run', { headers: { accept: 'text/event-stream' } });
    expect(events.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await events.text()).toBe('data: ✓ one\n\ndata: ✓ two\n\n');
  });

  it.each([
    ['text/event-stream, */*', 'text/event-stream'],
    ['TEXT/Event-Stream', 'text/event-stream'],
    ['text/plain;q=0.5, text/event-stream', 'text/event-stream'],
    ['text/event-stream; charset=UTF-8', 'text/event-stream'],
    ['text/event-stream;q=0', 'text/plain'],
    ['text/event-stream;q=0.5, text/plain', 'text/plain'],
    ['*/*', 'text/plain'],
    ['text/x; y="text/event-stream"', 'text/plain'],
  ])('a stream that is accepted as %s is sent as %s', async (accept, type) => {
    const { headers } = await get('/v1/sandbox/run', { headers: { accept } });
    expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
  });

  it.each(['application/json;', 'Application/JSON ; charset="UTF-8"', 'application/json; charset=utf-8 ;'])(
    'a body may come as %s',
    async (type) => {
      const { status } = await post(eventsPath, event, { ...bearer, 'content-type': type });
      expect(status).toBe(200);
    },
  );
});

describe('REST refusals', () => {
  it('an unknown path is route_not_found, also below a known one and with a body', async () => {
    for (const path of ['/', '/v1', '/v1/nothing', '/nothing', '/v1/health/x']) {
      const response = await get(path);
      expect([response.status, (await envelope(response)).code]).toEqual([404, 'route_not_found']);
    }
    const posted = await post('/nothing', '{broken', { 'content-type': 'text/strange' });
    expect((await envelope(posted)).code).toBe('route_not_found');
  });

  it('the 404 at a path without the version names the path with it, if there is one', async () => {
    const { message, details } = await envelope(await get(`/ledgers/${ledgerId}?limit=1`));
    expect(details).toEqual({ expected: `/v1/ledgers/${ledgerId}` });
    expect(message).toContain(`/v1/ledgers/${ledgerId}`);
    expect((await envelope(await post('/legal/terms', '{}'))).details).toEqual({ expected: '/v1/legal/terms' });
    for (const path of ['/nothing', '/v1/nothing', '/v1/v1/ledgers'])
      expect((await envelope(await get(path))).details).toBeUndefined();
  });

  it('a method that a path does not take is refused with 405 and Allow', async () => {
    const response = await get('/v1/health', { method: 'DELETE' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
    expect((await envelope(response)).code).toBe('method_not_allowed');
  });

  it('OPTIONS names the methods of a path, and is 404 for an unknown path', async () => {
    const response = await get('/v1/health', { method: 'OPTIONS' });
    expect([response.status, response.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS']);
    expect((await get('/v1/nothing', { method: 'OPTIONS' })).status).toBe(404);
  });

  it('broken percent-encoding is invalid_argument', async () => {
    expect((await envelope(await get('/v1/actors/%zz'))).code).toBe('invalid_argument');
    expect((await envelope(await get('/%zz'))).code).toBe('invalid_argument');
  });

  it('an unexpected error is internal, without its cause', async () => {
    const response = await get('/v1/legal/terms');
    const error = await envelope(response);
    expect([response.status, error.code]).toEqual([500, 'internal']);
    expect(JSON.stringify(error)).not.toContain('db-7');
    expect(node.lines.some((line) => line.includes('db-7') && line.includes(error.request_id))).toBe(true);
  });

  it('a refusal keeps its code, status and details', async () => {
    const response = await get(`/v1/ledgers/${ledgerId}`, { headers: bearer });
    const error = { code: 'access_expired', details: { link_id: 'x' } };
    expect([response.status, await envelope(response)]).toMatchObject([403, error]);
  });

  const wrongType = [415, 'unsupported_media_type'] as const;
  const withType = (type: string) => ({ 'content-type': type });
  const twoCharsets = withType('application/json; charset=utf-8; charset=x');
  type Refused = [name: string, body: string, headers: Record<string, string>, expected: readonly [number, string]];
  it.each<Refused>([
    ['a body without a content type', event, withType(''), wrongType],
    ['a form', event, withType('application/x-www-form-urlencoded'), wrongType],
    ['another charset', event, withType('application/json; charset=latin1'), wrongType],
    ['a body with two charsets', event, twoCharsets, wrongType],
    ['a compressed body', event, { 'content-encoding': 'gzip' }, wrongType],
    ['broken JSON', '{"event_type":', {}, [400, 'invalid_json']],
    ['a key that is given twice', '{"event_type":"A","event_type":"B"}', {}, [400, 'duplicate_key']],
    ['a key that is given twice by an escape', '{"payload":{"a":1,"\\u0061":2}}', {}, [400, 'duplicate_key']],
    ['an unsafe number', '{"payload":{"a":9007199254740993}}', {}, [400, 'unsafe_number']],
    ['a lone surrogate', '{"payload":{"a":"\\ud800"}}', {}, [400, 'invalid_string']],
    ['too deep JSON', `{"payload":${'['.repeat(70)}${']'.repeat(70)}}`, {}, [400, 'too_deep']],
    ['an unknown field', '{"event_typ":"A","payload":{}}', {}, [400, 'invalid_argument']],
    ['a payload that is text', '{"event_type":"A","payload":"{}"}', {}, [400, 'invalid_argument']],
    ['too large a body', `{"payload":{"a":"${'x'.repeat(1024 * 1024)}"}}`, {}, [413, 'payload_too_large']],
  ])('%s is refused', async (_name, body, headers, expected) => {
    const response = await post(eventsPath, body, { ...bearer, ...headers });
    expect([response.status, (await envelope(response)).code]).toEqual(expected);
  });

  it('the checks run in order: route, credential, media type, JSON, fields', async () => {
    const code = async (headers: Record<string, string>, body: string) =>
      (await envelope(await post(eventsPath, body, headers))).code;
    expect(await code({ 'content-type': 'text/plain' }, '{broken')).toBe('unauthenticated');
    expect(await code({ ...bearer, 'content-type': 'text/plain' }, '{broken')).toBe('unsupported_media_type');
    expect(await code(bearer, '{broken')).toBe('invalid_json');
    expect((await envelope(await post('/v1/nothing', '{broken'))).code).toBe('route_not_found');
    const large = await post(eventsPath, 'x'.repeat(3 * 1024 * 1024));
    expect([large.status, (await envelope(large)).code]).toEqual([401, 'unauthenticated']);
  });

  it('a body that is empty, null or {} is the same for a method without fields', async () => {
    for (const body of [undefined, '', 'null', '{}']) {
      const response = await fetch(`${node.base}/v1/traceledger/master/${masterId}/close`, {
        method: 'PATCH',
        headers: body === undefined || body === '' ? bearer : { ...bearer, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body }),
      });
      expect((await envelope(response)).code).toBe('unavailable');
    }
  });
});

describe('unknown query parameters', () => {
  const list = `/v1/traceledger/master?ledger_id=${ledgerId}`;
  const ignored = (response: Response) => response.headers.get('x-ignored-parameters');

  it('are named in a header of the answer, of refusals and of calls with a body too', async () => {
    const answer = await get(`${list}&staus=OPEN&b%2Cc=1`, { headers: bearer });
    expect([answer.status, ignored(answer)]).toEqual([200, 'staus, b%2Cc']);
    expect(ignored(await get(list, { headers: bearer }))).toBe(null);
    const refusedField = await get(`${list}&staus=OPEN&limit=x`, { headers: bearer });
    expect([refusedField.status, ignored(refusedField)]).toEqual([400, 'staus']);
    const refusedByService = await get(`/v1/ledgers/${ledgerId}?ledger_id=x`, { headers: bearer });
    expect([refusedByService.status, ignored(refusedByService)]).toEqual([403, 'ledger_id']);
    const posted = await post(`${eventsPath}?event_type=Y`, event, bearer);
    expect([posted.status, ignored(posted)]).toEqual([200, 'event_type']);
    const emptied = await get('/v1/developer/keys/k?x', { method: 'DELETE', headers: bearer });
    expect([emptied.status, ignored(emptied)]).toEqual([204, 'x']);
    const streamed = await get('/v1/sandbox/run?speed=2');
    expect([streamed.status, ignored(streamed)]).toEqual([200, 'speed']);
    const known = await get('/v1/.well-known/svc-authority?v=1', { headers: { 'if-none-match': '"abc"' } });
    expect([known.status, ignored(known)]).toEqual([304, 'v']);
  });

  it('are refused by name, with the nearest known one, if X-Strict asks for it', async () => {
    const headers = { ...bearer, 'x-strict': '1' };
    const refused = await get(`${list}&staus=OPEN`, { headers });
    expect([refused.status, ignored(refused)]).toEqual([400, null]);
    expect(await envelope(refused)).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'staus', nearest: 'status', expected: expect.stringContaining('business_ref') },
    });
    expect((await get(`${list}&status=OPEN`, { headers })).status).toBe(200);
    seen = null;
    const posted = await post(`${eventsPath}?event_type=Y`, event, headers);
    expect(await envelope(posted)).toMatchObject({ details: { field: 'event_type', expected: 'no parameters' } });
    expect(seen).toBe(null);
    const badValue = await get(list, { headers: { ...bearer, 'x-strict': 'yes' } });
    expect(await envelope(badValue)).toMatchObject({ code: 'invalid_argument', details: { header: 'X-Strict' } });
    expect(ignored(await get(`${list}&staus=OPEN`, { headers: { ...bearer, 'x-strict': '0' } }))).toBe('staus');
  });
});

describe('CORS', () => {
  it('a preflight from an allowed origin gets permission, and another one does not', async () => {
    const preflight = (origin: string) =>
      get(eventsPath, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } });
    const allowed = await preflight('https://app.example.com');
    const origin = allowed.headers.get('access-control-allow-origin');
    expect([allowed.status, origin]).toEqual([204, 'https://app.example.com']);
    expect(allowed.headers.get('access-control-allow-headers')).toContain('Idempotency-Key');
    expect(allowed.headers.get('access-control-allow-headers')).toContain('X-Strict');
    expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBe(null);
  });

  it('answers and refusals carry the permission', async () => {
    const headers = { origin: 'https://app.example.com' };
    for (const path of ['/v1/health', '/v1/nothing', '/v1/developer/me']) {
      const answer = (await get(path, { headers })).headers;
      expect(answer.get('access-control-allow-origin')).toBe(headers.origin);
      expect(answer.get('access-control-expose-headers')).toContain('X-Ignored-Parameters');
    }
  });
});

describe('the log', () => {
  it('has one line for each request, without secrets, payloads or queries', async () => {
    node.lines.length = 0;
    const headers = { ...bearer, 'x-request-id': 'log-1' };
    await get(`/v1/traceledger/master?ledger_id=${ledgerId}&secret=hidden-query`, { headers });
    expect(node.lines).toHaveLength(1);
    const line = JSON.parse(node.lines[0] ?? '') as Record<string, unknown>;
    expect(line).toMatchObject({
      ...{ transport: 'rest', method: 'GET', route: '/v1/traceledger/master', status: 200, code: 'ok' },
      ...{ ms: expect.any(Number), request_id: 'log-1', actor: actorId },
    });
    expect(node.lines[0]).not.toMatch(/hidden-query|svc_sk/);
  });

  it('access records name the ledger, the method, the path and the status', async () => {
    node.accesses.length = 0;
    await get(`/v1/ledgers/${ledgerId}?x=1`, { headers: { ...bearer, 'x-request-id': 'audit-1' } });
    expect(node.accesses).toMatchObject([
      { ledgerId, method: 'GET', path: `/v1/ledgers/${ledgerId}`, responseStatus: 403, requestId: 'audit-1' },
    ]);
  });
});
