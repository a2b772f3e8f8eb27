import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it, test } from 'vitest';
import { endpointsOf } from '../../../../src/rpc/endpoints/endpoint.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { encodingFor } from '../../../../src/rpc/http/compression.ts';
import { sharedBytes } from '../../../../src/rpc/http/response.ts';
import { shareAnswer } from '../../../../src/service/calls/shared-answer.ts';
import { bearer, ledgerId, listeningNodeForTests } from '../../../support/listening-node.ts';

const masters = Array.from({ length: 100 }, (_, at) => ({ uuid: ledgerId, businessRef: `ref-${at}`, scope: 'ORDER' }));
const document = sharedBytes(Buffer.from(JSON.stringify({ paths: Array(500).fill('/v1/ledgers') })));

let encoded = 0;
const reason = 'r\u00e9voqu\u00e9e \u{1f511}'.repeat(50);
const shared = shareAnswer({ role: 'OPS', keys: Array(200).fill({ kid: 'a', revokedReason: reason }) }, () => {
  encoded += 1;
});

const node = await listeningNodeForTests({
  grpc: false,
  corsOrigins: ['https://app.example.com'],
  pages: new Map([
    ['/openapi.json', () => ({ status: 200, headers: ['content-type', 'application/json'], body: document })],
  ]),
  handlers: {
    'MasterService.ListMasters': async () => ({ ledgerId, count: masters.length, masters }),
    'HealthService.GetTerms': async (_request, call) => {
      call.setHeader('etag', '"abc"');
      return { version: '1', text: 'terms '.repeat(500) };
    },
    'ResolverService.ResolveActor': async (_request, call) => {
      call.setHeader('etag', '"shared"');
      return shared;
    },
    'HealthService.GetHealth': async () => ({ status: 'ok', db: [] }),
    'DeveloperService.CreateApiKey': async () => ({ keyId: ledgerId, apiKey: 'x'.repeat(5_000) }),
    'LedgerService.GetLedger': async () => {
      throw new TypeError('x'.repeat(5_000));
    },
    'SandboxService.RunSandbox': async function* () {
      yield { line: 'one '.repeat(1_000) };
    },
  },
});

interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** As sent: fetch would decompress it. */
function raw(method: string, path: string, headers: Record<string, string>, body?: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(node.base + path, { method, headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject).end(body);
  });
}

const list = `/v1/traceledger/master?ledger_id=${ledgerId}`;
const unpack = { gzip: gunzipSync, br: brotliDecompressSync } as const;
const json = { ...bearer, 'content-type': 'application/json' };

describe.each(['gzip', 'br'] as const)('with Accept-Encoding: %s', (encoding) => {
  const accept = { 'accept-encoding': encoding };

  it('a REST answer above 1 KiB is compressed, and names the encoding and what it varies by', async () => {
    const plain = await raw('GET', list, bearer);
    const { headers, body } = await raw('GET', list, { ...bearer, ...accept, origin: 'https://app.example.com' });
    expect([headers['content-encoding'], headers['content-length']]).toEqual([encoding, String(body.length)]);
    expect(headers.vary).toBe('Origin, Accept-Encoding');
    expect(unpack[encoding](body)).toEqual(plain.body);
    expect(body.length).toBeLessThan(plain.body.length / 4);
    expect([plain.headers['content-encoding'], plain.headers.vary]).toEqual([undefined, 'Origin, Accept-Encoding']);
  });

  it('a Connect answer in JSON is compressed', async () => {
    const path = '/svc.v1.MasterService/ListMasters';
    const { headers, body } = await raw('POST', path, { ...json, ...accept }, JSON.stringify({ ledgerId }));
    expect(headers['content-encoding']).toBe(encoding);
    expect(JSON.parse(unpack[encoding](body).toString())).toMatchObject({ count: masters.length });
  });

  it('a document that never changes is compressed', async () => {
    const { headers, body } = await raw('GET', '/openapi.json', accept);
    expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'Accept-Encoding']);
    expect(unpack[encoding](body)).toEqual(document);
  });

  it('HEAD has the headers of GET', async () => {
    for (const [path, headers] of [['/openapi.json', accept] as const, [list, { ...bearer, ...accept }] as const]) {
      const [got, head] = [await raw('GET', path, headers), await raw('HEAD', path, headers)];
      expect(head.headers['content-length']).toBe(String(got.body.length));
      expect([head.headers['content-encoding'], head.body.length]).toEqual([encoding, 0]);
    }
  });

  it.each([
    ['REST', '/v1/developer/keys', '{"name":"a"}'],
    ['Connect', '/svc.v1.DeveloperService/CreateApiKey', '{"name":"a"}'],
  ])('an answer with a secret is never compressed: %s', async (_name, path, sent) => {
    const { status, headers, body } = await raw('POST', path, { ...json, ...accept }, sent);
    expect([status, headers['content-encoding'], body.includes('x'.repeat(5_000))]).toEqual([200, undefined, true]);
  });

  it('small answers, errors and streams of events are sent as they are', async () => {
    const answers = [
      await raw('GET', '/v1/health', accept),
      await raw('GET', `/v1/ledgers/${ledgerId}`, { ...bearer, ...accept }),
      await raw('GET', '/v1/sandbox/run', { ...accept, accept: 'text/event-stream' }),
    ];
    expect(answers.map(({ status, headers }) => [status, headers['content-encoding']])).toEqual([
      [200, undefined],
      [500, undefined],
      [200, undefined],
    ]);
  });

  it('its ETag is weak, and answers 304 to a client that has either form', async () => {
    const terms = '/v1/legal/terms';
    expect((await raw('GET', terms, {})).headers.etag).toBe('"abc"');
    expect((await raw('GET', terms, accept)).headers.etag).toBe('W/"abc"');
    const known = await raw('GET', terms, { ...accept, 'if-none-match': 'W/"abc"' });
    expect([known.status, known.headers.etag, known.headers.vary]).toEqual([304, 'W/"abc"', 'Origin, Accept-Encoding']);
    expect((await raw('GET', terms, { 'if-none-match': 'W/"abc"' })).status).toBe(304);
  });
});

describe('an answer that many calls send', () => {
  const path = '/v1/resolve/svc:actor:x';

  it('is encoded once, and compressed for those that accept it', async () => {
    const plain = await raw('GET', path, {});
    expect(JSON.parse(plain.body.toString())).toMatchObject({ role: 'OPS', keys: { 199: { revoked_reason: reason } } });
    expect(plain.headers['content-length']).toBe(String(plain.body.length));
    expect((await raw('GET', path, {})).body).toEqual(plain.body);
    const compressed = await raw('GET', path, { 'accept-encoding': 'gzip' });
    expect(gunzipSync(compressed.body)).toEqual(plain.body);
    expect(encoded).toBe(1);
  });

  it('takes no memory for a caller that has it', async () => {
    const { memory } = node;
    const held = memory.maxBytes;
    memory.add('answer', held);
    try {
      expect((await raw('GET', path, {})).status).toBe(503);
      const known = await raw('GET', path, { 'accept-encoding': 'gzip', 'if-none-match': '"shared"' });
      expect([known.status, known.headers.etag, known.body.length]).toEqual([304, 'W/"shared"', 0]);
    } finally {
      memory.release('answer', held);
    }
  });
});

it('what compressing holds is released once the answers are taken', async () => {
  const all = Array.from({ length: 40 }, () => raw('GET', list, { ...bearer, 'accept-encoding': 'br' }));
  for (const { status } of await Promise.all(all)) expect(status).toBe(200);
  await expect.poll(() => node.memory.heldBytes()).toBe(0);
});

it('the encoding is the one that Accept-Encoding gives the most weight', () => {
  expect(encodingFor(undefined)).toBeNull();
  expect(encodingFor('')).toBeNull();
  expect(encodingFor('deflate, zstd')).toBeNull();
  expect(encodingFor('gzip;q=0, br;q=0')).toBeNull();
  expect(encodingFor('identity, gzip;q=0.5')).toBeNull();
  expect(encodingFor('gzip;q=0.5, br;q=0.9')).toBe('br');
  expect(encodingFor('br;q=0, gzip')).toBe('gzip');
  expect(encodingFor('*')).not.toBeNull();
});

test('every field of an answer that may hold a secret is marked as one, and its method known to have one', () => {
  const withSecret = apiServices
    .flatMap((service) => service.methods)
    .filter(({ output }) =>
      fieldsOf(output).some(({ name }) => /(^|_)(api_key|secret|token|password|private_key)$/.test(name)),
    )
    .map(({ name }) => name);
  const handlers = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, async () => ({})]));
  const endpoints = endpointsOf(
    apiServices.map((service) => ({
      service,
      handlers: handlers(service.methods.map(({ localName }) => localName)),
      names: {},
    })),
  );
  const marked = [...endpoints.values()].filter(({ hasSecret }) => hasSecret).map(({ method }) => method.name);
  expect(marked.toSorted()).toEqual(withSecret.toSorted());
  expect(marked).toContain('CreateApiKey');
  expect(marked).toContain('CreateWebhook');
});

function fieldsOf(desc: DescMessage, seen = new Set<DescMessage>()): readonly DescField[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field) => [field, ...(field.message ? fieldsOf(field.message, seen) : [])]);
}
