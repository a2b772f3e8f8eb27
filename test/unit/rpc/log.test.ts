import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pages } from '../../../src/node/pages.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../support/listening-node.ts';

// Every request leaves one line and one count, whichever part answers it.

let node: ListeningNode;
beforeAll(async () => {
  node = await startListeningNode({
    grpc: false,
    handlers: { 'HealthService.GetHealth': async () => ({ status: 'ok' }) },
    pages: new Map([
      ...pages,
      [
        '/broken',
        () => {
          throw new Error('what broke');
        },
      ],
    ]),
  });
});
afterAll(() => node[Symbol.asyncDispose]());
beforeEach(() => {
  node.lines.length = 0;
  node.metrics.requests.reset();
});

/** Sends bytes as they are, and more once the server had time for the first; answers with what comes back until the server ends. */
function raw(bytes: string, more?: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(node.http.port, '127.0.0.1', () => {
      socket.write(bytes, 'latin1');
      if (more !== undefined) setTimeout(() => socket.write(more, 'latin1'), 50);
    });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {}).on('close', () => resolve(text));
  });
}

/** The one line there is, once it is there. */
async function oneLine(): Promise<Record<string, unknown>> {
  await expect.poll(() => node.lines.length).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(node.lines).toHaveLength(1);
  return JSON.parse(node.lines[0] ?? '');
}

/** What was counted, with its labels. */
async function counted(): Promise<unknown> {
  return (await node.metrics.requests.get()).values.map(({ labels, value }) => ({ ...labels, value }));
}

const head = (start: string, more = '') => `${start} HTTP/1.1\r\nHost: a\r\n${more}Connection: close\r\n\r\n`;
const sent = 'X-Request-Id: r-1\r\n';

describe('one line and one count', () => {
  const requests: [string, string, object][] = [
    ['a page', head('GET /docs?secret=1', sent), { transport: 'page', route: '/docs', status: 200, code: 'ok' }],
    ['its head', head('HEAD /docs/', sent), { transport: 'page', route: '/docs', status: 200, method: 'HEAD' }],
    ['the description', head('GET /openapi.json', sent), { transport: 'page', route: '/openapi.json', status: 200 }],
    ['a redirection', head('GET /', sent), { transport: 'page', route: '/', status: 302, code: 'ok' }],
    [
      'a page that breaks',
      head('GET /broken', sent),
      { transport: 'page', route: '/broken', status: 500, code: 'internal' },
    ],
    [
      'an unknown path',
      head('GET /secret', sent),
      { transport: 'http', route: 'none', status: 404, code: 'route_not_found' },
    ],
    ['an unknown path of the API', head('GET /v1/secret', sent), { transport: 'rest', route: 'none', status: 404 }],
    ['an unknown method', head('POST /svc.v1.Secret/A', sent), { transport: 'connect', route: 'none', status: 404 }],
    [
      'an Expect that is not ours',
      head('GET /health', `${sent}Expect: secret\r\n`),
      { transport: 'http', route: 'none', status: 417, code: 'invalid_argument' },
    ],
    [
      'a Host that is none',
      `GET /docs HTTP/1.1\r\n${sent}Host: a/secret\r\nConnection: close\r\n\r\n`,
      { status: 400 },
    ],
  ];
  it.each(requests)('%s', async (_name, bytes, expected) => {
    const answer = await raw(bytes);
    const line = await oneLine();
    expect(line).toMatchObject({
      method: 'GET',
      ms: expect.any(Number),
      request_id: 'r-1',
      ...methodOf(bytes),
      ...expected,
    });
    expect(answer).toContain(` ${line.status} `);
    expect(answer.toLowerCase()).toContain('x-request-id: r-1');
    expect(node.lines[0]).not.toMatch(/secret/);
    const { transport, route, code } = line;
    expect(Number(line.ms) > 0).toBe(transport === 'page');
    expect(await counted()).toEqual([{ transport, method: route, code, value: 1 }]);
  });

  const malformed: [string, string, number, string][] = [
    ['bytes that are no request', 'secret\r\n\r\n', 400, ''],
    ['headers that are too large', head('GET /', `X: ${'x'.repeat(20_000)}\r\n`), 431, ''],
    ['what is meant for a proxy', 'CONNECT secret:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'CONNECT'],
  ];
  it.each(malformed)('%s', async (_name, bytes, status, method) => {
    const answer = await raw(bytes);
    const line = await oneLine();
    expect(line).toMatchObject({ transport: 'http', method, route: 'none', status, ms: 0 });
    expect(answer).toContain(`x-request-id: ${line.request_id}`);
    expect(await counted()).toMatchObject([{ transport: 'http', method: 'none', value: 1 }]);
  });

  describe('a call whose body breaks off in the middle, under the id of its answer', () => {
    const head = `Host: a\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const [rest, rpc] = [`/v1/traceledger/master/${masterId}/events`, '/svc.v1.MasterService/AppendEvent'];
    it.each([
      ['REST', 'rest', rest, false],
      ['REST, at once', 'rest', rest, true],
      ['Connect', 'connect', rpc, false],
      ['Connect, at once', 'connect', rpc, true],
    ])('%s', async (_name, transport, path, isAtOnce) => {
      const start = `POST ${path} HTTP/1.1\r\n${head}\r\n`;
      const answer = await (isAtOnce ? raw(`${start}zz\r\n`) : raw(start, 'zz\r\n'));
      const line = await oneLine();
      expect(line).toMatchObject({ transport, msg: 'call', code: 'unavailable' });
      expect(answer).toContain('HTTP/1.1 400 ');
      expect(answer).toContain(`x-request-id: ${line.request_id}`);
      expect(answer).toContain(`"request_id":"${line.request_id}"`);
    });
  });
});

it('a page that breaks is answered with the envelope, and its line has the cause', async () => {
  const response = await fetch(`${node.base}/broken`);
  const requestId = response.headers.get('x-request-id');
  const message = 'The page cannot be shown.';
  expect(await response.json()).toEqual({ error: { code: 'internal', message, request_id: requestId } });
  const err = expect.objectContaining({ message: 'what broke', stack: expect.any(String) });
  expect(await oneLine()).toMatchObject({
    level: 'error',
    msg: 'no call',
    transport: 'page',
    request_id: requestId,
    err,
  });
});

function methodOf(bytes: string): object {
  return { method: bytes.slice(0, bytes.indexOf(' ')) };
}
