import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { pages } from '../../../src/node/pages.ts';
import { bearer, listeningNodeForTests, masterId } from '../../support/listening-node.ts';
import { openTextSocket, sendRaw } from '../../support/raw-http.ts';

const broken = () => {
  throw new Error('what broke');
};
const node = await listeningNodeForTests({
  grpc: false,
  handlers: { 'HealthService.GetHealth': async () => ({ status: 'ok' }) },
  pages: new Map([...pages, ['/broken', broken]]),
});
beforeEach(() => {
  node.lines.length = 0;
  node.metrics.requests.reset();
});

/** Waits for the one log line. */
async function oneLine(): Promise<Record<string, unknown>> {
  await expect.poll(() => node.lines.length).toBeGreaterThan(0);
  await delay(20);
  expect(node.lines).toHaveLength(1);
  return JSON.parse(node.lines[0] ?? '');
}

const raw = (bytes: string) => sendRaw(node.http.port, bytes);

/** What was counted, with its labels. */
async function counted(): Promise<unknown> {
  return (await node.metrics.requests.get()).values.map(({ labels, value }) => ({ ...labels, value }));
}

const head = (start: string, more = '') => `${start} HTTP/1.1\r\nHost: a\r\n${more}Connection: close\r\n\r\n`;
const sent = 'X-Request-Id: r-1\r\n';

describe('every request leaves one log line and one count', () => {
  const http = { transport: 'http', route: 'none' };
  const page = (route: string, status = 200) => ({ transport: 'page', route, status });
  const badHost = `GET /docs HTTP/1.1\r\n${sent}Host: a/secret\r\nConnection: close\r\n\r\n`;
  const requests: [string, string, object][] = [
    ['a page', head('GET /docs?secret=1', sent), { ...page('/docs'), code: 'ok' }],
    ['the head of a page', head('HEAD /docs/', sent), page('/docs')],
    ['the OpenAPI document', head('GET /openapi.json', sent), page('/openapi.json')],
    ['a redirection', head('GET /', sent), { ...page('/', 302), code: 'ok' }],
    ['a page that throws', head('GET /broken', sent), { ...page('/broken', 500), code: 'internal' }],
    ['an unknown path', head('GET /secret', sent), { ...http, status: 404, code: 'route_not_found' }],
    ['an unknown path of the API', head('GET /v1/secret', sent), { ...http, transport: 'rest', status: 404 }],
    ['an unknown method', head('POST /svc.v1.Secret/A', sent), { ...http, transport: 'connect', status: 404 }],
    [
      'an unknown Expect',
      head('GET /health', `${sent}Expect: secret\r\n`),
      { ...http, status: 417, code: 'invalid_argument' },
    ],
    ['a malformed Host', badHost, { status: 400 }],
  ];
  it.each(requests)('%s', async (_name, bytes, expected) => {
    const answer = await raw(bytes);
    const line = await oneLine();
    const method = bytes.slice(0, bytes.indexOf(' '));
    expect(line).toMatchObject({ method, ms: expect.any(Number), request_id: 'r-1', ...expected });
    expect(answer).toContain(` ${line.status} `);
    expect(answer.toLowerCase()).toContain('x-request-id: r-1');
    expect(node.lines[0]).not.toMatch(/secret/);
    const { transport, route, code } = line;
    expect(Number(line.ms) > 0).toBe(transport === 'page');
    expect(await counted()).toEqual([{ transport, method: route, code, value: 1 }]);
  });

  it.each([
    ['bytes that are no request', 'secret\r\n\r\n', 400, ''],
    ['headers that are too large', head('GET /', `X: ${'x'.repeat(20_000)}\r\n`), 431, ''],
    ['a CONNECT', 'CONNECT secret:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'CONNECT'],
  ])('%s', async (_name, bytes, status, method) => {
    const answer = await raw(bytes);
    const line = await oneLine();
    expect(line).toMatchObject({ transport: 'http', method, route: 'none', status, ms: 0 });
    expect(answer).toContain(`x-request-id: ${line.request_id}`);
    expect(await counted()).toMatchObject([{ transport: 'http', method: 'none', value: 1 }]);
  });

  describe('a call with malformed bytes in its body has the request id of its answer', () => {
    const head = `Host: a\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
    const [rest, rpc] = [`/v1/traceledger/master/${masterId}/events`, '/svc.v1.MasterService/AppendEvent'];
    it.each([
      ['REST', 'rest', rest, false],
      ['REST, at once', 'rest', rest, true],
      ['Connect', 'connect', rpc, false],
      ['Connect, at once', 'connect', rpc, true],
    ])('%s', async (_name, transport, path, isAtOnce) => {
      const start = `POST ${path} HTTP/1.1\r\n${head}\r\n`;
      const socket = openTextSocket(node.http.port);
      const closed = new Promise((resolve) => socket.on('close', resolve));
      socket.write(start);
      if (!isAtOnce) await delay(50);
      socket.write('zz\r\n');
      await closed;
      const line = await oneLine();
      expect(line).toMatchObject({ transport, msg: 'call', code: 'unavailable' });
      expect(socket.text).toContain('HTTP/1.1 400 ');
      expect(socket.text).toContain(`x-request-id: ${line.request_id}`);
      expect(socket.text).toContain(`"request_id":"${line.request_id}"`);
    });
  });
});

it('a page that throws is answered with the envelope, and its log line has the cause', async () => {
  const response = await fetch(`${node.base}/broken`);
  const requestId = response.headers.get('x-request-id');
  const message = 'The page cannot be shown.';
  expect(await response.json()).toEqual({ error: { code: 'internal', message, request_id: requestId } });
  const err = expect.objectContaining({ message: 'what broke', stack: expect.any(String) });
  const line = { level: 'error', msg: 'no call', transport: 'page', request_id: requestId, err };
  expect(await oneLine()).toMatchObject(line);
});
