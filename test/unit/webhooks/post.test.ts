import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/runtime/clock/system-clock.ts';
import { createPoster } from '../../../src/webhooks/post/http-post.ts';
import { answerMaxBytes, informationalMax } from '../../../src/webhooks/post/outgoing-request.ts';
import { receivedMaxBytes } from '../../../src/webhooks/post/received-bound.ts';
import { receiverConnector } from '../../../src/webhooks/post/receiver-connect.ts';
import { onLoopback } from '../../support/loopback.ts';
import {
  closeServers,
  countingListener,
  development,
  listenOnAny,
  posterFor,
  receiver,
  servers,
} from '../../support/webhook-poster.ts';

afterAll(closeServers);

describe('receivers that misbehave', () => {
  test('nobody there, no such name, and no TLS where TLS is asked for', async () => {
    const listener = await countingListener('127.0.0.1');
    const { post } = posterFor(development, async () => []);
    expect(await post('https://nowhere.example/')).toEqual({ kind: 'failed', fault: 'unknown_name' });
    expect(await post('http://127.0.0.1:1/')).toEqual({ kind: 'failed', fault: 'not_reached' });
    expect(await post(`https://127.0.0.1:${listener.port}/`)).toEqual({ kind: 'failed', fault: 'tls_failed' });
  });

  test('a receiver that never answers is given up at the timeout', async () => {
    const { url } = await receiver(() => {});
    const { post } = posterFor(development);
    expect(await post(url, AbortSignal.timeout(200))).toEqual({ kind: 'failed', fault: 'timeout' });
  });

  test('a name server that never answers is given up at the timeout', async () => {
    const { post } = posterFor(development, () => new Promise(() => {}));
    expect(await post('https://hooks.example/', AbortSignal.timeout(200))).toEqual({
      kind: 'failed',
      fault: 'timeout',
    });
  });

  test('an answer without end is read up to 64 KiB; its status counts', async () => {
    let written = 0;
    const { url } = await receiver((_request, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(64 * 1024, 97);
      const more = () => {
        while (!response.destroyed && written < 64 * 1024 * 1024) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
      };
      more();
    });
    const { post } = posterFor(development);
    expect(await post(url)).toEqual({ kind: 'answered', status: 200 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });

  test('a status whose body breaks off counts; a connection that breaks off before does not', async () => {
    const { url } = await receiver((_request, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('a');
      setTimeout(() => response.destroy(), 20);
    });
    const cut = await receiver((request) => request.socket.destroy());
    const { post } = posterFor(development);
    expect(await post(url)).toEqual({ kind: 'answered', status: 200 });
    expect(await post(cut.url)).toEqual({ kind: 'failed', fault: 'broken_off' });
    expect(cut.sockets()).toBe(1);
  });

  test('a slow body after the status holds its connection until the timeout, and the delivery succeeds', async () => {
    const { url } = await receiver((_request, response) => {
      response.writeHead(200).write('a');
      const timer = setInterval(() => response.write('a'), 10);
      response.on('close', () => clearInterval(timer));
    });
    const { post } = posterFor(development);
    expect(await post(url, AbortSignal.timeout(200))).toEqual({ kind: 'answered', status: 200 });
  });

  test('headers beyond 16 KiB and what is no HTTP fail', async () => {
    const { url } = await receiver((_request, response) =>
      response.writeHead(200, { 'x-long': 'a'.repeat(17_000) }).end(),
    );
    const noise = createTcpServer((socket) => socket.on('error', () => {}).end('SSH-2.0-OpenSSH_9.6\r\n'));
    const port = await onLoopback(noise);
    servers.push(noise);
    const { post } = posterFor(development);
    expect(await post(url)).toMatchObject({ kind: 'failed' });
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ kind: 'failed' });
  });
});

/** A key and a certificate of its own authority for `name`. */
function certificate(name: string): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-tls-'));
  const at = (file: string) => join(folder, file);
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  const made = ['-keyout', at('key.pem'), '-out', at('cert.pem'), '-days', '2', '-nodes'];
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  execFileSync('openssl', [...kind, ...subject, ...made], { stdio: 'ignore' });
  const files = { key: readFileSync(at('key.pem'), 'utf8'), cert: readFileSync(at('cert.pem'), 'utf8') };
  rmSync(folder, { recursive: true });
  return files;
}

describe('what is received for an attempt', () => {
  const KiB = 1024;
  const tls = certificate('hooks.example');

  /** A receiver that sends `head` to each request, and then `piece` without end. */
  async function pouring(isTls: boolean, head: string, piece: string) {
    const progress = { sent: 0, requests: 0, open: 0 };
    const many = Buffer.from(piece.repeat(Math.ceil((16 * KiB) / piece.length)));
    const serve = (socket: Socket) => {
      progress.open += 1;
      socket
        .on('error', () => {})
        .on('close', () => {
          progress.open -= 1;
        });
      const pour = () => {
        while (!socket.destroyed) {
          progress.sent += many.length;
          if (!socket.write(many)) return void socket.once('drain', pour);
        }
      };
      socket.once('data', () => {
        progress.requests += 1;
        socket.write(head);
        pour();
      });
    };
    const server = isTls ? createTlsServer(tls, serve) : createTcpServer(serve);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    const given = { policy: development, lookup: async () => ['127.0.0.1'], clock: systemClock, trustedCa: tls.cert };
    const poster = createPoster(receiverConnector(given), 4);
    servers.push({ close: () => poster[Symbol.asyncDispose]() });
    const url = `${isTls ? 'https' : 'http'}://hooks.example:${(server.address() as AddressInfo).port}/`;
    const post = () => poster.post({ url, headers: {}, body: Buffer.from('{}'), signal: AbortSignal.timeout(5_000) });
    return { progress, post };
  }

  const ok = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  const failed = { kind: 'failed', fault: 'broken_off' };
  const answered = { kind: 'answered', status: 200 };
  test.each([
    ['informational answers', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', failed],
    ['informational answers with long headers', '', `HTTP/1.1 103 A\r\nx: ${'y'.repeat(15 * KiB)}\r\n\r\n`, failed],
    ['a status line', 'HTTP/1.1 200 ', 'y'.repeat(KiB), failed],
    ['headers', 'HTTP/1.1 200 OK\r\n', 'x: y\r\n', failed],
    ['empty lines before the answer', '', '\r\n', failed],
    ['a body of small chunks with extensions', ok, '1;a=b\r\nx\r\n', answered],
    ['a body of one chunk with an endless extension', `${ok}1;`, 'y'.repeat(KiB), answered],
  ])('is bounded, whatever it is, and its connection ends: %s', async (_, head, piece, result) => {
    for (const isTls of [false, true]) {
      const { progress, post } = await pouring(isTls, head, piece);
      expect(await post()).toEqual(result);
      await expect.poll(() => progress.open).toBe(0);
      // The rest was on its way, in the buffers of the two sockets.
      expect(progress.sent).toBeLessThan(16 * 1024 * KiB);
      expect(progress.requests).toBe(1);
    }
  });

  /**
   * Posts to `openssl s_server` with these arguments. Once it has the request, it gets `line` on its standard input
   * again and again, and nothing more that the poster sends.
   */
  async function postToOpenssl(args: readonly string[], line: string) {
    const folder = mkdtempSync(join(tmpdir(), 'webhook-openssl-'));
    for (const [name, text] of Object.entries(tls)) writeFileSync(join(folder, name), text);
    const files = ['-cert', join(folder, 'cert'), '-key', join(folder, 'key')];
    let printed = '';
    const server = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', ...files, ...args]);
    let ended = line === '';
    const type = () => {
      if (ended) return;
      if (server.stdin.writableLength < KiB) server.stdin.write(line);
      setImmediate(type);
    };
    let asked = false;
    server.stdin.on('error', () => {});
    server.stdout.on('data', (text) => {
      if (printed.length < 16 * KiB) printed += text;
      if (!asked && printed.includes('content-length: 2')) {
        asked = true;
        type();
      }
    });
    const portOf = () => /ACCEPT 127\.0\.0\.1:(\d+)\s/.exec(printed)?.[1];
    await expect.poll(portOf, { timeout: 10_000 }).toBeDefined();
    rmSync(folder, { recursive: true });
    const progress = { received: 0 };
    const between = createTcpServer((socket) => {
      const behind = connect(Number(portOf()), '127.0.0.1');
      socket.on('error', () => {}).on('data', (chunk) => asked || behind.write(chunk));
      behind
        .on('error', () => {})
        .on('data', (chunk) => {
          progress.received += chunk.length;
          if (!socket.write(chunk)) behind.pause();
        });
      socket.on('drain', () => behind.resume()).on('close', () => behind.destroy());
    });
    const port = await onLoopback(between);
    servers.push(between);
    const given = { policy: development, lookup: async () => ['127.0.0.1'], clock: systemClock, trustedCa: tls.cert };
    const poster = createPoster(receiverConnector(given), 4);
    servers.push({ close: () => poster[Symbol.asyncDispose]() });
    servers.push({ close: () => server.kill() });
    const url = `https://hooks.example:${port}/`;
    const signal = AbortSignal.timeout(60_000);
    const result = await poster.post({ url, headers: {}, body: Buffer.from('{}'), signal });
    ended = true;
    return { result, received: progress.received };
  }

  test.each([
    ['session tickets of TLS', ['-num_tickets', '5000'], ''],
    ['second handshakes of TLS 1.2', ['-tls1_2'], 'r\n'],
    ['updates of keys of TLS 1.3', ['-tls1_3'], 'k\n'],
  ])('is bounded, and its connection ends: %s', { timeout: 90_000 }, async (_, args, line) => {
    const { result, received } = await postToOpenssl(args, line);
    expect(result).toEqual(failed);
    expect(received).toBeGreaterThan(receivedMaxBytes);
    expect(received).toBeLessThan(16 * 1024 * KiB);
  });

  test('may be 16 informational answers before the answer, and no more', async () => {
    let hints = informationalMax;
    let requests = 0;
    const { url } = await receiver((_request, response) => {
      requests += 1;
      for (let at = 0; at < hints; at += 1) response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.end();
    });
    const { post } = posterFor(development);
    expect(informationalMax).toBe(16);
    expect(await post(url)).toEqual(answered);
    hints += 1;
    expect(await post(url)).toEqual(failed);
    expect(requests).toBe(2);
  });

  test('is counted anew for each request of a kept connection', async () => {
    const large = Buffer.alloc(answerMaxBytes, 97);
    const { url, sockets } = await receiver((_request, response) => response.end(large));
    const { post } = posterFor(development);
    const posts = (4 * receivedMaxBytes) / answerMaxBytes;
    for (let at = 0; at < posts; at += 1) expect(await post(url)).toEqual(answered);
    expect(sockets()).toBeLessThan(posts / 2);
  });
});

describe('TLS', () => {
  test('a certificate has to be of a trusted authority and for the name of the URL', async () => {
    const tls = certificate('hooks.example');
    const names: (string | false)[] = [];
    const server = createHttpsServer(tls, (_request, response) => response.end('ok'));
    server.on('secureConnection', (socket) => names.push(socket.servername ?? ''));
    const port = await listenOnAny(server);
    const lookup = async () => ['127.0.0.1'];
    const poster = (trustedCa?: string) => {
      const given = { policy: development, lookup, clock: systemClock };
      const made = createPoster(receiverConnector(trustedCa === undefined ? given : { ...given, trustedCa }), 4);
      servers.push({ close: () => made[Symbol.asyncDispose]() });
      return (host: string) =>
        made.post({
          url: `https://${host}:${port}/`,
          headers: {},
          body: Buffer.from('{}'),
          signal: AbortSignal.timeout(5_000),
        });
    };
    const failed = { kind: 'failed', fault: 'tls_failed' };
    expect(await poster(tls.cert)('hooks.example')).toEqual({ kind: 'answered', status: 200 });
    expect(await poster(tls.cert)('other.example')).toEqual(failed);
    expect(await poster()('hooks.example')).toEqual(failed);
    expect(names[0]).toBe('hooks.example');
  });
});

describe('connections', () => {
  test('are kept for the next delivery, and one that was closed meanwhile is no failure', async () => {
    const seen: Buffer[] = [];
    let close = false;
    const target = await receiver((request, response, body) => {
      seen.push(body);
      if (close) {
        close = false;
        request.socket.destroy();
      } else response.end('thanks');
    });
    const { post } = posterFor(development);
    for (let at = 0; at < 10; at++) expect(await post(target.url)).toEqual({ kind: 'answered', status: 200 });
    expect(target.sockets()).toBeLessThan(4);
    close = true;
    expect(await post(target.url)).toEqual({ kind: 'answered', status: 200 });
    expect(seen).toHaveLength(12);
  });

  test('what is posted arrives as it is, with its path and query', async () => {
    let seen: unknown;
    const target = await receiver((request, response, body) => {
      seen = [request.method, request.url, request.headers['content-type'], body.toString()];
      response.writeHead(204).end();
    });
    const { post } = posterFor(development);
    expect(await post(target.url)).toEqual({ kind: 'answered', status: 204 });
    expect(seen).toEqual(['POST', '/hook?a=1', 'application/json', '{}']);
  });
});
