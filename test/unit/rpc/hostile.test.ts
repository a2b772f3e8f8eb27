import { status } from '@grpc/grpc-js';
import { describe, expect, it, vi } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { HealthService } from '../../../src/gen/svc/v1/health_pb.ts';
import { reflectionPath } from '../../../src/rpc/connect/reflection.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { floods, nodeEnds } from '../../support/attacks/grpc-floods.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import {
  bearer,
  type ListeningNodeOptions,
  listeningNodeForTests,
  masterId,
  startListeningNode,
} from '../../support/listening-node.ts';
import { openSocket, openTextSocket, parts, sendRaw, type TextSocket } from '../../support/raw-http.ts';

const node = await listeningNodeForTests({
  handlers: {
    'HealthService.GetHealth': async () => ({ status: 'ok' }),
    'MasterService.AppendEvent': async () => ({ seq: 1n }),
  },
});

const raw = (bytes: string | string[], waitMs?: number) => sendRaw(node.http.port, bytes, waitMs);
const closing = 'Connection: close\r\n';
const healthy = async () => expect((await fetch(`${node.base}/health`)).status).toBe(200);
const get = (headers: string) => `GET /health HTTP/1.1\r\n${headers}\r\n`;
const post = (headers: string, body: string) => `POST /v1/actors HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`;

describe('an HTTP request with a fault is answered with the error envelope', () => {
  const malformed = { status: 400, code: 'invalid_argument' };
  const headersTooLarge = { status: 431, code: 'invalid_argument' };
  const notAllowed = { status: 405, code: 'method_not_allowed' };
  const wrongCoding = { status: 415, code: 'unsupported_media_type' };
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const http10 = `POST /v1/actors HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n${chunked}\r\n2\r\n{}\r\n0\r\n\r\n`;
  it.each([
    ['bytes that are no HTTP', 'hello\r\n\r\n', malformed],
    ['HTTP/2 without an upgrade', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', malformed],
    ['no Host', get(closing), malformed],
    ['two Hosts', get(`Host: a\r\nHost: b\r\n${closing}`), malformed],
    ['a malformed Host', get(`Host: a/b@c\r\n${closing}`), malformed],
    ['a space before the colon', get(`Host : a\r\n${closing}`), malformed],
    ['a folded header', get(`Host: a\r\nX: b\r\n c\r\n${closing}`), malformed],
    ['a NUL in a header', get(`Host: a\r\nX: b\0c\r\n${closing}`), malformed],
    ['two lengths', post('Content-Length: 5\r\nContent-Length: 6\r\n', 'hello'), malformed],
    ['a length and chunks', post(`Content-Length: 5\r\n${chunked}`, '0\r\n\r\n'), malformed],
    ['a coding after chunked', post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'), malformed],
    ['a malformed chunk length', `POST /health HTTP/1.1\r\nHost: a\r\n${chunked}\r\nzz\r\n`, notAllowed],
    ['a negative length', post('Content-Length: -1\r\n', ''), malformed],
    ['headers that are too large', get(`Host: a\r\nX: ${'x'.repeat(20_000)}\r\n`), headersTooLarge],
    ['too many headers', get(`Host: a\r\n${'X: y\r\n'.repeat(200)}`), headersTooLarge],
    ['100,000 headers', get(`Host: a\r\n${'X: y\r\n'.repeat(100_000)}`), headersTooLarge],
    ['an unknown Expect', get(`Host: a\r\nExpect: magic\r\n${closing}`), { status: 417, code: 'invalid_argument' }],
    [
      'another coding of the body',
      post(`Transfer-Encoding: gzip, chunked\r\n${closing}`, '2\r\n{}\r\n0\r\n\r\n'),
      wrongCoding,
    ],
    ['chunks over HTTP/1.0, and a request after them', `${http10}${get('Host: a\r\n')}`, wrongCoding],
    ['CONNECT', `CONNECT db:9042 HTTP/1.1\r\nHost: a\r\n\r\n`, notAllowed],
    [
      'a target that is no path and no percent-encoding',
      `GET *%ff HTTP/1.1\r\nHost: a\r\n${closing}\r\n`,
      { status: 404, code: 'route_not_found' },
    ],
    ['a method of WebDAV', `PROPFIND /health HTTP/1.1\r\nHost: a\r\n${closing}\r\n`, notAllowed],
  ])('%s', async (_name, bytes, expected) => {
    expect(parts(await raw(bytes, 1_500))).toEqual(expected);
    await healthy();
  });
});

it('CONNECT is refused with an empty Allow', async () => {
  const answer = await raw(`CONNECT db:9042 HTTP/1.1\r\nHost: a\r\n\r\n`, 1_500);
  expect(answer).toMatch(/^HTTP\/1.1 405 [\s\S]*\r\nallow: *\r\n/);
});

const authorization = `Authorization: ${bearer.authorization}`;
const eventsPath = `/v1/traceledger/master/${masterId}/events`;

describe('a defect while a request is answered is an internal error of that request, and ends nothing', () => {
  const defect = (): never => {
    throw new Error('a defect');
  };
  const handlers = { 'HealthService.GetHealth': async () => ({ status: 'ok' }) };
  it.each<[string, ListeningNodeOptions]>([
    ['where it is looked for who serves it', { handlers, pages: Object.assign(new Map(), { get: defect }) }],
    ['while its call runs', { handlers: { 'HealthService.GetHealth': defect } }],
  ])('%s', async (_name, options) => {
    await using faulty = await startListeningNode({ ...options, grpc: false });
    expect(parts(await sendRaw(faulty.http.port, get(`Host: a\r\n${closing}`)))).toEqual({
      status: 500,
      code: 'internal',
    });
    expect(faulty.lines.filter((line) => line.includes('a defect'))).toHaveLength(1);
  });

  it('while its error is encoded, over REST and over gRPC', async () => {
    const refuse = () => {
      throw new LedgerError('already_exists', 'It cannot be encoded.', { seq: 1n as unknown as number });
    };
    await using faulty = await startListeningNode({ handlers: { 'HealthService.GetHealth': refuse } });
    for (const _ of [1, 2]) {
      const answer = await fetch(`${faulty.base}/health`);
      expect([answer.status, await answer.json()]).toEqual([
        500,
        { error: expect.objectContaining({ code: 'internal' }) },
      ]);
    }
    const client = grpcClient(faulty.grpcAddress);
    const { error, info } = await callGrpc(client, HealthService.method.getHealth, {});
    client.close();
    expect([error?.code, info?.reason]).toEqual([status.INTERNAL, 'internal']);
    expect(faulty.lines.filter((line) => line.includes('error after the answer'))).toHaveLength(3);
  });

  it('while its access is recorded', async () => {
    await using faulty = await startListeningNode({
      handlers: {
        'MasterService.AppendEvent': async (_message, call) => {
          call.named(masterId);
          return { seq: 1n };
        },
      },
      history: defect,
      grpc: false,
    });
    const headers = { ...bearer, 'content-type': 'application/json' };
    const body = JSON.stringify({ event_type: 'STEP', payload: {} });
    const answer = await fetch(`${faulty.base}${eventsPath}`, { method: 'POST', headers, body });
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { error: expect.objectContaining({ code: 'internal' }) },
    ]);
    expect(faulty.lines.at(-1)).toContain('a defect');
    await expect.poll(() => faulty.pipeline.running.size).toBe(0);
  });
});

describe('a body that never ends', () => {
  it.each([
    ['REST', eventsPath],
    ['Connect', '/svc.v1.MasterService/AppendEvent'],
  ])('is answered at the deadline over %s, and nothing was written', async (_name, path) => {
    let skewMs = 0;
    await using slow = await startListeningNode({
      handlers: { 'MasterService.AppendEvent': async () => ({ seq: 1n }) },
      now: () => Date.now() + skewMs,
      grpc: false,
    });
    const socket = openTextSocket(slow.http.port);
    const head = `Host: a\r\n${authorization}\r\nContent-Type: application/json\r\nContent-Length: 90`;
    socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n{"event_type"`);
    await expect.poll(() => slow.pipeline.running.size).toBe(1);
    skewMs = limits.callTimeoutMs + 1;
    await expect.poll(() => socket.text).toContain(' 503 ');
    await expect.poll(() => socket.text).toMatch(/"unavailable"|"reason":"unavailable"/);
    expect(socket.text).toContain('nothing was written');
    socket.destroy();
    await expect.poll(() => slow.pipeline.running.size).toBe(0);
  });
});

it.each([
  ['Authorization', [authorization, authorization], 'invalid_api_key'],
  ['X-Actor-Sig', [authorization, 'X-Actor-Sig: a', 'X-Actor-Sig: b'], 'invalid_signature'],
  [
    'X-Signing-Key-ID',
    [authorization, 'X-Actor-Sig: a', 'X-Signing-Key-ID: a', 'x-signing-key-id: a'],
    'invalid_signature',
  ],
  [
    'X-ACTOR-ID',
    [`X-ACTOR-ID: ${masterId}`, `X-ACTOR-ID: ${masterId}`, 'X-ACTOR-TYPE: device'],
    'invalid_actor_identity',
  ],
])('%s that is sent twice is refused', async (_name, headers, code) => {
  const request = `POST ${eventsPath} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n${headers.join('\r\n')}\r\n${closing}\r\n`;
  expect(parts(await raw(request))).toEqual({ status: 401, code });
});

describe('bodies', () => {
  const head = (more: string) =>
    `POST ${eventsPath} HTTP/1.1\r\nHost: a\r\n${authorization}\r\nContent-Type: application/json\r\n${more}\r\n`;

  it('with a length of 1 GiB are refused before they are sent', async () => {
    const began = Date.now();
    const answer = await raw(head(`Content-Length: ${2 ** 30}\r\n`), 5_000);
    expect(parts(answer)).toEqual({ status: 413, code: 'payload_too_large' });
    expect(Date.now() - began).toBeLessThan(limits.lingerMaxMs + 1_500);
  });

  it('without an end are refused once they are too large, and the caller gets the answer', async () => {
    const socket = openTextSocket(node.http.port);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(head('Transfer-Encoding: chunked\r\n'));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const more = (): void => {
      while (!socket.destroyed && socket.writable && socket.write(chunk));
      if (!socket.destroyed) socket.once('drain', more);
    };
    more();
    await closed;
    expect(parts(socket.text)).toEqual({ status: 413, code: 'payload_too_large' });
    await healthy();
  });

  it('a caller that waits for 100 Continue gets its refusal instead, or the go-ahead', async () => {
    const refused = await raw(head('Content-Length: 9999999\r\nExpect: 100-continue\r\n'), 4_000);
    expect(refused.startsWith('HTTP/1.1 413')).toBe(true);
    const body = '{"event_type":"A","payload":{}}';
    const taken = await raw([head(`Content-Length: ${body.length}\r\nExpect: 100-continue\r\n${closing}`), body]);
    expect(taken.startsWith('HTTP/1.1 100 Continue')).toBe(true);
    expect(taken).toContain('HTTP/1.1 200 OK');
  });

  it('that are cut off half way end their call and nothing else', async () => {
    const socket = openSocket(node.http.port);
    socket.write(head('Content-Length: 1000\r\n'));
    socket.write('{"event_type"');
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await expect.poll(() => node.pipeline.running.size).toBe(0);
    await healthy();
  });
});

// What many connections and larger attacks cost a node in memory: test/api/process-attacks.nightly.ts.
describe('hostile connections', () => {
  it('headers that do not end in time are refused, and their connection ends', async () => {
    const { headersTimeoutMs, connectionsCheckMs } = limits;
    const answer = await raw('GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ', headersTimeoutMs + 3 * connectionsCheckMs);
    expect(parts(answer)).toEqual({ status: 408, code: 'invalid_argument' });
    await healthy();
  });

  it('the gRPC port ends a connection that never ends the headers of a call (CONTINUATION flood)', async () => {
    expect(await nodeEnds({ grpc: node.grpcAddress }, floods.CONTINUATION)).toBe(true);
    expect(node.pipeline.running.size).toBe(0);
    await healthy();
  });
});

describe('streams of reflection, which need no credential', () => {
  const head =
    `POST ${reflectionPath} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n` +
    'Content-Type: application/connect+proto\r\nConnect-Protocol-Version: 1\r\n\r\n';
  /** One framed ServerReflectionRequest {list_services}, whose answer shows that the stream is open. */
  const listServices = Buffer.from([0, 0, 0, 0, 2, 0x3a, 0]);
  const chunk = `${listServices.length.toString(16)}\r\n${listServices.toString('latin1')}\r\n`;
  const end = '0\r\n\r\n';

  async function openStream(): Promise<TextSocket> {
    const socket = openTextSocket(node.http.port);
    socket.write(head + chunk, 'latin1');
    await expect.poll(() => socket.text, { interval: 5, timeout: 5_000 }).toContain('svc.v1.HealthService');
    return socket;
  }

  it('are so many at most: the oldest one ends for a new one, and a client that asks and goes is answered', async () => {
    const sockets: TextSocket[] = [];
    for (let at = 0; at < limits.standardStreamsMax; at += 1) sockets.push(await openStream());
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sockets.filter(({ closed }) => closed)).toEqual([]);
    expect(await raw(head + chunk + end)).toContain('svc.v1.HealthService');
    await expect.poll(() => sockets.filter(({ closed }) => closed)).toEqual([sockets[0]]);
    // A stream that has ended has given back its place.
    const more = await openStream();
    expect(sockets.filter(({ closed }) => closed)).toHaveLength(1);
    for (const socket of [...sockets, more]) socket.destroy();
    await healthy();
  });

  it('end after a time, whatever their client does', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const socket = openTextSocket(node.http.port);
      const closed = new Promise((resolve) => socket.on('close', resolve));
      const answered = new Promise<void>((resolve) => {
        socket.on('data', () => {
          if (socket.text.includes('svc.v1.HealthService')) resolve();
        });
      });
      socket.write(head + chunk, 'latin1');
      await answered;
      vi.advanceTimersByTime(limits.httpReflectionMaxMs - 1);
      expect(socket.closed).toBe(false);
      vi.advanceTimersByTime(1);
      await closed;
    } finally {
      vi.useRealTimers();
    }
    await healthy();
  });
});
