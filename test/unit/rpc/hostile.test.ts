import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { continuationFlood, rapidReset } from '../../support/attacks.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../support/listening-node.ts';
import { openSocket, parts, sendRaw } from '../../support/raw-http.ts';

let node: ListeningNode;
beforeAll(async () => {
  node = await startListeningNode({
    handlers: {
      'HealthService.GetHealth': async () => ({ status: 'ok' }),
      'MasterService.AppendEvent': async () => ({ seq: 1n }),
    },
  });
});
afterAll(() => node[Symbol.asyncDispose]());

const open = () => openSocket(node.http.port);
const raw = (bytes: string | string[], waitMs?: number) => sendRaw(node.http.port, bytes, waitMs);

const closing = 'Connection: close\r\n';
const healthy = async () => expect((await fetch(`${node.base}/health`)).status).toBe(200);

describe('malformed HTTP gets the envelope', () => {
  it.each([
    ['no HTTP at all', 'hello\r\n\r\n', 400, 'invalid_argument'],
    ['HTTP/2 without agreement', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'invalid_argument'],
    ['no Host', `GET /health HTTP/1.1\r\n${closing}\r\n`, 400, 'invalid_argument'],
    ['two Hosts', `GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n${closing}\r\n`, 400, 'invalid_argument'],
    ['a Host that is none', `GET /health HTTP/1.1\r\nHost: a/b@c\r\n${closing}\r\n`, 400, 'invalid_argument'],
    ['a space before the colon', `GET /health HTTP/1.1\r\nHost : a\r\n${closing}\r\n`, 400, 'invalid_argument'],
    ['a folded header', `GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n${closing}\r\n`, 400, 'invalid_argument'],
    ['a NUL in a header', `GET /health HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n${closing}\r\n`, 400, 'invalid_argument'],
    [
      'two lengths',
      `POST /v1/actors HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      400,
      'invalid_argument',
    ],
    [
      'length and chunks',
      `POST /v1/actors HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'invalid_argument',
    ],
    [
      'a coding behind chunked',
      `POST /v1/actors HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
      400,
      'invalid_argument',
    ],
    [
      'a chunk length that is none',
      `POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      405,
      'method_not_allowed',
    ],
    ['a negative length', `POST /v1/actors HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n`, 400, 'invalid_argument'],
    [
      'headers too large',
      `GET /health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'invalid_argument',
    ],
    ['too many headers', `GET /health HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(200)}\r\n`, 431, 'invalid_argument'],
    [
      '100,000 headers',
      `GET /health HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(100_000)}\r\n`,
      431,
      'invalid_argument',
    ],
    [
      'an Expect that is not ours',
      `GET /health HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n${closing}\r\n`,
      417,
      'invalid_argument',
    ],
    [
      'a body coded in another way',
      `POST /v1/actors HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n${closing}\r\n2\r\n{}\r\n0\r\n\r\n`,
      415,
      'unsupported_media_type',
    ],
    [
      'chunks over HTTP/1.0, and a request behind them',
      `POST /v1/actors HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n`,
      415,
      'unsupported_media_type',
    ],
    ['CONNECT', `CONNECT db:9042 HTTP/1.1\r\nHost: a\r\n\r\n`, 405, 'method_not_allowed'],
    ['a method of WebDAV', `PROPFIND /health HTTP/1.1\r\nHost: a\r\n${closing}\r\n`, 405, 'method_not_allowed'],
  ])('%s', async (_name, bytes, status, code) => {
    const answer = parts(await raw(bytes, 1_500));
    expect(answer).toEqual({ status, code });
    await healthy();
  });
});

it('CONNECT is told that there is no method for it', async () => {
  expect(await raw(`CONNECT db:9042 HTTP/1.1\r\nHost: a\r\n\r\n`, 1_500)).toMatch(
    /^HTTP\/1.1 405 [\s\S]*\r\nallow: *\r\n/,
  );
});

describe('a body that never comes to its end', () => {
  it.each([
    ['REST', `/v1/traceledger/master/${masterId}/events`],
    ['Connect', '/svc.v1.MasterService/AppendEvent'],
  ])('is answered at the deadline that nothing was written, over %s', async (_name, path) => {
    let skewMs = 0;
    await using slow = await startListeningNode({
      handlers: { 'MasterService.AppendEvent': async () => ({ seq: 1n }) },
      now: () => Date.now() + skewMs,
    });
    const answered = new Promise<string>((resolve) => {
      const socket = connect(slow.http.port, '127.0.0.1');
      socket.on('data', (chunk) => {
        resolve(chunk.toString('latin1'));
        socket.destroy();
      });
      const head = `Host: a\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\nContent-Length: 90`;
      socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n{"event_type"`);
    });
    await expect.poll(() => slow.pipeline.running.size).toBe(1);
    skewMs = limits.callTimeoutMs + 1;
    const answer = await answered;
    expect(answer).toContain(' 503 ');
    expect(answer).toMatch(/"unavailable"|"reason":"unavailable"/);
    expect(answer).toContain('nothing was written');
    await expect.poll(() => slow.pipeline.running.size).toBe(0);
  });
});

describe('credentials sent twice', () => {
  it.each([
    [
      'Authorization',
      [`Authorization: ${bearer.authorization}`, `Authorization: ${bearer.authorization}`],
      'invalid_api_key',
    ],
    [
      'X-Actor-Sig',
      [`Authorization: ${bearer.authorization}`, 'X-Actor-Sig: a', 'X-Actor-Sig: b'],
      'invalid_signature',
    ],
    [
      'X-Signing-Key-ID',
      [`Authorization: ${bearer.authorization}`, 'X-Actor-Sig: a', 'X-Signing-Key-ID: a', 'x-signing-key-id: a'],
      'invalid_signature',
    ],
    [
      'X-ACTOR-ID',
      [`X-ACTOR-ID: ${masterId}`, `X-ACTOR-ID: ${masterId}`, 'X-ACTOR-TYPE: device'],
      'invalid_actor_identity',
    ],
  ])('%s is refused', async (_name, headers, code) => {
    const request = `POST /v1/traceledger/master/${masterId}/events HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n${headers.join('\r\n')}\r\n${closing}\r\n`;
    expect(parts(await raw(request))).toEqual({ status: 401, code });
  });
});

describe('bodies', () => {
  const head = (more: string) =>
    `POST /v1/traceledger/master/${masterId}/events HTTP/1.1\r\nHost: a\r\nAuthorization: ${bearer.authorization}\r\nContent-Type: application/json\r\n${more}\r\n`;

  it('of 1 GiB by its length is refused before it is sent', async () => {
    const began = Date.now();
    expect(parts(await raw(head(`Content-Length: ${2 ** 30}\r\n`), 5_000))).toEqual({
      status: 413,
      code: 'payload_too_large',
    });
    expect(Date.now() - began).toBeLessThan(limits.lingerMaxMs + 1_500);
  });

  it('without an end are refused once they are too large, and the caller gets to read it', async () => {
    const answer = await new Promise<string>((resolve) => {
      const socket = open();
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('close', () => resolve(text));
      socket.write(head('Transfer-Encoding: chunked\r\n'));
      const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
      const more = (): void => {
        while (!socket.destroyed && socket.writable && socket.write(chunk));
        if (!socket.destroyed) socket.once('drain', more);
      };
      more();
    });
    expect(parts(answer)).toEqual({ status: 413, code: 'payload_too_large' });
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

  it('pipelined requests are answered one by one', async () => {
    const request = 'GET /health HTTP/1.1\r\nHost: a\r\n';
    const answers = await raw(`${request}\r\n${request}\r\n${request}${closing}\r\n`);
    expect(answers.match(/HTTP\/1.1 200 OK/g)).toHaveLength(3);
  });

  it('a body cut off half way ends its call and nothing else', async () => {
    const socket = open();
    socket.write(head('Content-Length: 1000\r\n'));
    socket.write('{"event_type"');
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    while (node.pipeline.running.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await healthy();
  });
});

// What many connections and larger attacks cost a node in memory: test/api/process-attacks.nightly.ts.
describe('connections that do harm', () => {
  it('headers that do not come to their end in time are refused, and their connection is ended', async () => {
    const { headersTimeoutMs, connectionsCheckMs } = limits;
    const answer = await raw('GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ', headersTimeoutMs + 3 * connectionsCheckMs);
    expect(parts(answer)).toEqual({ status: 408, code: 'invalid_argument' });
    await healthy();
  });

  it('the gRPC port ends a connection that never ends the headers of a call (CONTINUATION flood)', async () => {
    expect(await continuationFlood(node.grpcAddress)).toBe(true);
    expect(node.pipeline.running.size).toBe(0);
    await healthy();
  });

  it('the gRPC port outlives a rapid reset', async () => {
    await rapidReset(node.grpcAddress, 2_000);
    await healthy();
    expect(node.pipeline.running.size).toBeLessThan(10);
  });
});
