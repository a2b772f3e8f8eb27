import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { LedgerTrustError } from '../../src/client/error.ts';
import {
  type ClientOptions,
  createClient,
  type LedgerTrustClient,
  signerFromPrivateKey,
} from '../../src/client/index.ts';
import { backoffMs, mayRetry } from '../../src/client/retry.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Answering = (seen: Seen, response: ServerResponse, count: number) => void;

let server: Server | null = null;
let client: LedgerTrustClient | null = null;

afterEach(async () => {
  await client?.close();
  server?.closeAllConnections();
  server?.close();
  client = server = null;
});

/** A client of a server that answers as told; waits between attempts take no time and are noted. */
async function against(answering: Answering, options: Partial<ClientOptions> = {}) {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const started = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const call = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(call);
      answering(call, response, seen.length);
    });
  });
  server = started;
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
  const made = createClient({
    baseUrl: `http://127.0.0.1:${(started.address() as AddressInfo).port}`,
    apiKey: 'svc_sk_test_x',
    retryClock: {
      monotonicMs: () => performance.now(),
      sleep: async (ms) => {
        waits.push(ms);
      },
      random: () => 1,
    },
    ...options,
  });
  client = made;
  return { client: made, seen, waits };
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r-1', ...headers });
  response.end(body === null ? undefined : JSON.stringify(body));
}

const failure = (code: string, details?: object) => ({
  error: { code, message: `It is ${code}.`, request_id: 'r-1', details },
});
const key = { key_id: 'k', api_key: 's', environment: 'sandbox', name: 'n' };
const ledger = {
  id: 'l',
  buyer_actor_id: 'b',
  supplier_actor_id: 's',
  status: 'OPEN',
  ledger_type: 'ORDER',
  created_at: 't',
};

describe('a call', () => {
  it('carries the API key, JSON, and a new idempotency key', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    expect(await client.createApiKey({ name: 'n' })).toEqual({
      keyId: 'k',
      apiKey: 's',
      environment: 'sandbox',
      name: 'n',
    });
    await client.createApiKey({ name: 'n' });
    const [first, second] = seen;
    expect(first).toMatchObject({ method: 'POST', url: '/v1/developer/keys', body: '{"name":"n"}' });
    expect(first?.headers).toMatchObject({ authorization: 'Bearer svc_sk_test_x', 'content-type': 'application/json' });
    expect(first?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
    expect(second?.headers['idempotency-key']).not.toBe(first?.headers['idempotency-key']);
  });

  it('that reads carries no idempotency key and no body', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, { ...ledger }));
    expect(await client.getLedger({ ledgerId: 'l' })).toMatchObject({ buyerOrganizationId: null, entityId: null });
    expect(seen[0]).toMatchObject({ method: 'GET', url: '/v1/ledgers/l', body: '' });
    expect(seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  it('that takes no credential sends none', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, { version: '1.0', text: 'x' }));
    await client.getTerms();
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
  });

  it('answered with 204 resolves to nothing', async () => {
    const { client, seen } = await against((_, response) => answer(response, 204, null));
    expect(await client.revokeActorKey({ actorId: 'a', kid: 'svc:actor:a#key-1', reason: 'lost' })).toBeUndefined();
    expect(seen[0]).toMatchObject({
      url: '/v1/actors/a/keys/svc%3Aactor%3Aa%23key-1/revoke',
      body: '{"reason":"lost"}',
    });
  });

  it('whose answer is a list has it under its name', async () => {
    const { client } = await against((_, response) => answer(response, 200, []));
    expect(await client.listActorKeys({ actorId: 'a', includeRevoked: true })).toEqual({ keys: [] });
  });

  it('goes below the path of the base URL', async () => {
    const { seen, client: plain } = await against((_, response) => answer(response, 200, { version: '1', text: '' }));
    const port = (server?.address() as AddressInfo | undefined)?.port ?? 0;
    await using below = createClient({ baseUrl: `http://127.0.0.1:${port}/trust/` });
    await below.getTerms();
    await plain.getTerms();
    expect(seen.map(({ url }) => url)).toEqual(['/trust/v1/legal/terms', '/v1/legal/terms']);
  });

  it('tells what came with its answer', async () => {
    const replayed = { 'idempotent-replayed': 'true' };
    const { client } = await against((_, response) => answer(response, 200, key, replayed));
    const told: unknown[] = [];
    await client.createApiKey({ name: 'n' }, { onAnswer: (facts) => told.push(facts) });
    expect(told).toEqual([{ requestId: 'r-1', replayed: true, attempts: 1 }]);
  });

  it('with a misspelt field is not sent', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    const request = { name: 'n', nmae: 'm' };
    await expect(client.createApiKey(request)).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
  });

  it('with a delivery chain other than an append is not sent', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    await expect(client.createApiKey({ name: 'n' }, { deliveryChain: [] })).rejects.toThrow(TypeError);
    expect(seen).toEqual([]);
  });
});

describe('an error', () => {
  it('has the code, message, details, request id and status of the envelope', async () => {
    const { client } = await against((_, response) =>
      answer(response, 404, failure('not_found', { field: 'ledger_id' })),
    );
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({
      name: 'LedgerTrustError',
      code: 'not_found',
      message: 'It is not_found.',
      details: { field: 'ledger_id' },
      requestId: 'r-1',
      status: 404,
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
  it.each(strangers)('says that %s (%i) is no answer of this API', async (_, status, body, code) => {
    const { client, seen } = await against(
      (_, response) => {
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body);
      },
      { attemptsMax: 1 },
    );
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({
      code,
      status,
    });
    expect(seen).toHaveLength(1);
  });

  it('of an address where nobody listens says that nothing was sent', async () => {
    await using nobody = createClient({ baseUrl: 'http://127.0.0.1:1', attemptsMax: 1 });
    await expect(nobody.getHealth()).rejects.toMatchObject({
      code: 'connection_lost',
      details: { sent: false },
      status: null,
    });
  });
});

describe('retrying', () => {
  it.each(['unavailable', 'overloaded', 'outcome_unknown', 'idempotency_in_progress', 'rate_limited'])(
    'after %s sends the same request with the same idempotency key',
    async (code) => {
      const { client, seen, waits } = await against((_, response, count) =>
        count < 3 ? answer(response, 503, failure(code)) : answer(response, 200, key),
      );
      const attempts: number[] = [];
      await client.createApiKey({ name: 'n' }, { onAnswer: (facts) => attempts.push(facts.attempts) });
      expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
      expect(attempts).toEqual([3]);
      expect(waits).toEqual([100, 200]);
    },
  );

  it('after a broken connection goes on', async () => {
    const { client, seen } = await against((_, response, count) =>
      count === 1 ? void response.socket?.destroy() : answer(response, 200, key),
    );
    await client.createApiKey({ name: 'n' });
    expect(seen).toHaveLength(2);
  });

  it.each([
    'permission_denied',
    'invalid_signature',
    'ledger_closed',
    'idempotency_key_reused',
    'internal',
    'not_found',
  ])('is not done after %s', async (code) => {
    const { client, seen } = await against((_, response) => answer(response, 400, failure(code)));
    await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject({ code });
    expect(seen).toHaveLength(1);
  });

  it('is not done for a creating call without a credential whose outcome is not known', async () => {
    const { client, seen } = await against((_, response) => answer(response, 504, failure('outcome_unknown')));
    await expect(client.createActor({ role: 'PARTICIPANT' })).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  it('is done for such a call where nothing was written', async () => {
    const made = { actor_id: 'a', svc_id: 's', role: 'PARTICIPANT' };
    const { client, seen } = await against((_, response, count) =>
      count === 1 ? answer(response, 503, failure('unavailable')) : answer(response, 200, made),
    );
    expect(await client.createActor()).toMatchObject({ actorId: 'a', key: null });
    expect(seen).toHaveLength(2);
  });

  it('waits as long as the service asks', async () => {
    const { client, waits } = await against((_, response, count) =>
      count === 1 ? answer(response, 429, failure('rate_limited'), { 'retry-after': '7' }) : answer(response, 200, key),
    );
    await client.createApiKey({ name: 'n' });
    expect(waits).toEqual([7_000]);
  });

  it('ends when a wait would take it beyond its time', async () => {
    const { client, seen } = await against((_, response) =>
      answer(response, 429, failure('rate_limited'), { 'retry-after': '60' }),
    );
    await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject({
      code: 'rate_limited',
      retryAfterMs: 60_000,
    });
    expect(seen).toHaveLength(1);
  });

  it('ends after its attempts with the last error', async () => {
    const { client, seen } = await against((_, response) => answer(response, 503, failure('unavailable')));
    await expect(client.getLedger({ ledgerId: 'l' }, { attemptsMax: 3 })).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(seen).toHaveLength(3);
  });

  it('takes an idempotency key of the caller', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    await client.createApiKey({ name: 'n' }, { idempotencyKey: 'mine' });
    expect(seen[0]?.headers['idempotency-key']).toBe('mine');
  });

  it('backs off with jitter, ever longer and never beyond 3 s', () => {
    expect([1, 2, 3, 6, 20].map((attempt) => backoffMs(attempt, null, () => 1))).toEqual([100, 200, 400, 3_000, 3_000]);
    expect(backoffMs(5, null, () => 0)).toBe(0);
  });

  it('is never done for what is no error of the service', () => {
    expect(mayRetry(new TypeError('x'), true)).toBe(false);
    expect(mayRetry(new LedgerTrustError('timeout', 'x'), false)).toBe(false);
  });
});

describe('time and abort', () => {
  it('an attempt that hangs is given up, and the call is retried and then fails with timeout', async () => {
    const { client, seen } = await against(() => {}, { attemptTimeoutMs: 50, attemptsMax: 2 });
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({ code: 'timeout' });
    expect(seen).toHaveLength(2);
  });

  it('all attempts together end with the call’s own time', async () => {
    const { client } = await against(() => {}, { attemptTimeoutMs: 10_000 });
    await expect(client.getLedger({ ledgerId: 'l' }, { timeoutMs: 60 })).rejects.toMatchObject({ code: 'timeout' });
  });

  it('an aborted call throws the reason of its signal and is not retried', async () => {
    const controller = new AbortController();
    const { client, seen } = await against(() => controller.abort(new Error('enough')));
    await expect(client.getLedger({ ledgerId: 'l' }, { signal: controller.signal })).rejects.toThrow('enough');
    expect(seen).toHaveLength(1);
  });

  it('a call with an aborted signal is not sent', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, ledger));
    await expect(
      client.getLedger({ ledgerId: 'l' }, { signal: AbortSignal.abort(new Error('before')) }),
    ).rejects.toThrow('before');
    expect(seen).toEqual([]);
  });
});

describe('an entity', () => {
  const entity = { actorId: '0193a000-0000-7000-8000-00000000000e', actorType: 'device' } as const;
  const gate = { require_arl: true, updated_at: 't' };

  it('without keys identifies itself by headers alone', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, gate), {
      apiKey: undefined,
      entity,
    } as object);
    await client.setArlGate({ requireArl: true });
    expect(seen[0]?.headers).toMatchObject({ 'x-actor-id': entity.actorId, 'x-actor-type': 'device' });
    expect(seen[0]?.headers).not.toHaveProperty('x-actor-sig');
    expect(seen[0]?.headers).not.toHaveProperty('authorization');
  });

  it('with a signer signs each attempt anew, under the same idempotency key', async () => {
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
  it.each(wrong)('%s', (_, options) => {
    expect(() => createClient(options)).toThrow(TypeError);
  });

  it('an append stream without a gRPC address', async () => {
    await using client = createClient({ baseUrl: 'http://127.0.0.1:1' });
    expect(() => client.appendStream()).toThrow(TypeError);
  });
});

describe('lists of events', () => {
  const event = (seq: number) => ({
    id: `e${seq}`,
    ledger_id: 'l',
    seq,
    event_type: 'A',
    actor_type: 'service',
    payload: {},
    hash: 'h',
    content_hash: 'c',
    created_at: 't',
  });
  const page = (seqs: number[], cursor?: string, issues: object[] = []) => ({
    ledger_id: 'l',
    count: seqs.length,
    integrity: { verified: issues.length === 0, issues },
    events: seqs.map(event),
    next_cursor: cursor,
  });
  const broken = [{ event_id: 'e2', type: 'hash_mismatch', detail: 'x' }];
  const read = async (source: AsyncIterable<{ readonly seq: number }>) => {
    const seqs: number[] = [];
    for await (const { seq } of source) seqs.push(seq);
    return seqs;
  };

  it('are read page by page to their end, with the same filter', async () => {
    const { client, seen } = await against((_, response, count) =>
      answer(response, 200, [page([0, 1], 'c1'), page([], 'c2'), page([2])][count - 1]),
    );
    expect(await read(client.ledgerEvents('l', { eventType: 'A', limit: 2 }))).toEqual([0, 1, 2]);
    expect(seen.map(({ url }) => url.replace('/v1/ledgers/l/events?', ''))).toEqual([
      'limit=2&event_type=A',
      'limit=2&cursor=c1&event_type=A',
      'limit=2&cursor=c2&event_type=A',
    ]);
  });

  it('are read no further than they are consumed', async () => {
    const { client, seen } = await against((_, response, count) => answer(response, 200, page([count], `c${count}`)));
    for await (const { seq } of client.ledgerEvents('l')) if (seq === 2) break;
    expect(seen).toHaveLength(2);
  });

  it('end with an error where the service reports failures, before their page is handed out', async () => {
    const { client } = await against((_, response, count) =>
      answer(response, 200, count === 1 ? page([1], 'c') : page([2], undefined, broken)),
    );
    const got: number[] = [];
    const reading = async () => {
      for await (const { seq } of client.ledgerEvents('l')) got.push(seq);
    };
    await expect(reading()).rejects.toMatchObject({
      code: 'integrity_failed',
      details: { issues: [{ eventId: 'e2' }] },
    });
    expect(got).toEqual([1]);
  });

  it('go on where the caller takes the failures itself', async () => {
    const { client } = await against((_, response) => answer(response, 200, page([2], undefined, broken)));
    const issues: unknown[] = [];
    expect(await read(client.ledgerEvents('l', {}, { onIssues: (found) => issues.push(...found) }))).toEqual([2]);
    expect(issues).toHaveLength(1);
  });

  it('end with an error where the same cursor comes for ever', async () => {
    const { client } = await against((_, response) => answer(response, 200, page([1], 'same')));
    await expect(read(client.ledgerEvents('l'))).rejects.toMatchObject({ code: 'invalid_answer' });
  });
});
