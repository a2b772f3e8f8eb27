import { once } from 'node:events';
import { createSecureServer, createServer, type Http2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { endSockets } from '../../../../src/rpc/grpc/ended-sessions.ts';
import { attackerOf } from '../../../support/attacks/grpc-connections.ts';
import { callHeaders, endHeaders, frame, frameType } from '../../../support/attacks/http2-frames.ts';
import { newTlsKeys } from '../../../support/tls-keys.ts';

const [endedMs, closedMs] = [200, 1_500];
vi.mock(import('../../../../src/runtime/limits/limits.ts'), async (original) => {
  const { limits } = await original();
  return { limits: Object.assign({}, limits, { grpcEndedSessionMs: 200, grpcClosedSessionMs: 1_500 }) };
});

const keys = newTlsKeys();

/** Of the server. */
interface Deaf {
  readonly session: Http2Session;
  readonly socket: Socket;
}

/** A connection whose client takes none of an answer of 64 MiB. `farewell`: what it sends after its call. */
async function deaf(isSecure: boolean, farewell: Uint8Array = Buffer.alloc(0)): Promise<Deaf> {
  const server = isSecure ? createSecureServer(keys) : createServer();
  endSockets(server);
  server.on('stream', async (stream) => {
    stream.on('error', () => {});
    stream.respond();
    // Node reads no more of a connection whose answer waits.
    await delay(100);
    stream.write(Buffer.alloc(64 * 1024 * 1024));
  });
  server.on('session', (session) => session.on('error', () => {}));
  const accepted = once(server, isSecure ? 'secureConnection' : 'connection');
  const begun = once(server, 'session');
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const over = new AbortController();
  onTestFinished(() => {
    over.abort();
    server.close();
  });
  const target = { grpc: `127.0.0.1:${(server.address() as AddressInfo).port}`, tls: isSecure };
  const client = await attackerOf(target, over.signal, { windowBytes: 2 ** 30, isDeaf: true });
  const answered = once(server, 'stream');
  const call = frame(frameType.headers, endHeaders, client.nextStream(), callHeaders('/'));
  await client.send(Buffer.concat([call, farewell]));
  await answered;
  // Until the kernel takes no more of it.
  await delay(400);
  const [[socket], [session]] = (await Promise.all([accepted, begun])) as [[Socket], [Http2Session]];
  return { session, socket };
}

/** How long the socket of a session stays that is ended by `end`. */
async function msUntilClosed(socket: Socket, end: () => void): Promise<number> {
  const closed = once(socket, 'close');
  const begunMs = performance.now();
  end();
  await closed;
  return performance.now() - begunMs;
}

describe.each([
  ['without TLS', false],
  ['with TLS', true],
])('the socket of a client that reads nothing, %s', (_, isSecure) => {
  test('is closed soon after its session was ended by force', async () => {
    const { session, socket } = await deaf(isSecure);
    const ms = await msUntilClosed(socket, () => session.destroy(new Error('it holds too much')));
    expect(ms).toBeGreaterThan(endedMs - 50);
    expect(ms).toBeLessThan(closedMs);
  });

  test('is closed as soon if its client has said goodbye before', async () => {
    const { session, socket } = await deaf(isSecure, frame(frameType.goaway, 0, 0, Buffer.alloc(8)));
    expect(session.closed).toBe(true);
    const ms = await msUntilClosed(socket, () => session.destroy(new Error('it holds too much')));
    expect(ms).toBeLessThan(closedMs);
  });

  test('is closed later if its session ended in order', async () => {
    const { session, socket } = await deaf(isSecure);
    session.close();
    const ms = await msUntilClosed(socket, () => session.destroy());
    expect(ms).toBeGreaterThan(closedMs - 50);
  });
});
