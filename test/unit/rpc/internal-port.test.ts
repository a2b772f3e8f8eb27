import type { Socket } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openInternalListener } from '../../../src/rpc/internal-listener.ts';
import { ConnectionPlaces } from '../../../src/runtime/limits/connection-places.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { createMetrics } from '../../../src/runtime/telemetry/metrics.ts';
import { openTextSocket, type TextSocket } from '../../support/raw-http.ts';

afterEach(() => void vi.useRealTimers());

/** An internal port. Connections that begin like those of other nodes prove to be ones if `isNode`. */
async function internalPort(isNode = false) {
  const peers: Socket[] = [];
  const transport = await openInternalListener(
    {
      metrics: createMetrics(),
      readiness: async () => ({ ready: true }),
      takeConnection: (socket, proved) => {
        socket.on('error', () => {});
        socket.resume();
        peers.push(socket);
        if (isNode) proved();
      },
    },
    '127.0.0.1',
    0,
  );
  onTestFinished(() => transport.close(0));
  return { port: transport.port, peers };
}

interface Client {
  readonly socket: TextSocket;
  readonly closed: Promise<void>;
}

async function client(port: number, sent = '', localAddress = '127.0.0.1'): Promise<Client> {
  const socket = openTextSocket(port, { localAddress });
  onTestFinished(() => void socket.destroy());
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  if (sent !== '') socket.write(sent);
  return { socket, closed };
}

const ready = 'GET /health/ready HTTP/1.1\r\nhost: x\r\n\r\n';
const [tlsHello, http2Preface] = ['\x16\x03\x01', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'];

async function answersReady(port: number, localAddress?: string): Promise<void> {
  const probe = await client(port, ready, localAddress);
  await probe.closed;
  expect(probe.socket.text).toContain('HTTP/1.1 200 OK\r\n');
  expect(probe.socket.text).toContain('{"status":"ready"}');
}

describe('the internal port', () => {
  test.each([
    ['silent', ''],
    ['with half a request', 'GET /health/ready HTTP/1.1\r\nhost: x\r\n'],
    ['with an unfinished TLS handshake', tlsHello],
    ['of peers that prove nothing', http2Preface],
  ])('answers probes from any address beside 300 connections: %s', async (_, sent) => {
    const { port } = await internalPort();
    const addresses = Array.from({ length: 10 }, (__, at) => `127.0.0.${at + 2}`);
    const attacks = await Promise.all(
      addresses.flatMap((address) => Array.from({ length: 30 }, () => client(port, sent, address))),
    );
    for (const address of ['127.0.0.1', '127.0.0.2']) await answersReady(port, address);
    const open = attacks.filter(({ socket }) => !socket.destroyed && socket.readyState === 'open');
    expect(open.length).toBeLessThanOrEqual(256);
    expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toMatch(/process_cpu/);
  });

  test('keeps the newest 64 silent connections of an address', async () => {
    const { port } = await internalPort();
    const silent: Client[] = [];
    for (let at = 0; at < 70; at++) silent.push(await client(port));
    await Promise.all(silent.slice(0, 6).map(({ closed }) => closed));
    expect(silent.slice(6).every(({ socket }) => !socket.destroyed)).toBe(true);
  });

  test('keeps connections of nodes, however many others arrive', async () => {
    const { port, peers } = await internalPort(true);
    await Promise.all(Array.from({ length: 100 }, () => client(port, http2Preface)));
    await expect.poll(() => peers.length).toBe(100);
    await Promise.all(Array.from({ length: 100 }, () => client(port)));
    await answersReady(port);
    expect(peers.every(({ destroyed }) => !destroyed)).toBe(true);
  });

  test('answers one request a connection and ends it', async () => {
    const { port } = await internalPort();
    const greedy = await client(port, ready.repeat(50));
    await greedy.closed;
    expect(greedy.socket.text.match(/HTTP\/1\.1 200 /g)).toHaveLength(1);
    expect(greedy.socket.text).toMatch(/connection: close/i);
  });
});

describe('the connections of a port', () => {
  test('end after ten seconds without a request', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { places, socket } = place();
    places.take(socket);
    vi.advanceTimersByTime(9_999);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
  });

  test('end half a minute after their request', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { places, socket } = place();
    places.take(socket);
    vi.advanceTimersByTime(5_000);
    places.endAfter(socket, limits.requestTimeoutMs);
    vi.advanceTimersByTime(29_999);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(socket.destroyed).toBe(true);
  });

  test('stay open if they are of nodes of the cluster', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { places, socket } = place();
    places.take(socket);
    places.keep(socket);
    vi.advanceTimersByTime(3_600_000);
    expect([socket.destroyed, places.size]).toEqual([false, 1]);
  });

  test('make room by the oldest of the address that has most', () => {
    const { places, socketOf } = place();
    const [a, b, c] = [socketOf('a'), socketOf('b'), socketOf('b')];
    for (const socket of [a, b, c, socketOf('c')]) places.take(socket);
    expect([a, b, c].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    // Three of an address are one too many, though there would be room.
    const { places: roomy, socketOf: another } = place(100);
    const three = [another('a'), another('a'), another('a')];
    for (const socket of three) roomy.take(socket);
    expect(three.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
  });

  function place(strangersMax = 3) {
    const places = new ConnectionPlaces({ strangersMax, strangersPerAddressMax: 2, silentMaxMs: 10_000 });
    const socketOf = (remoteAddress: string): Socket => {
      const socket = {
        remoteAddress,
        destroyed: false,
        on: () => {},
        destroy() {
          this.destroyed = true;
        },
      };
      return socket as unknown as Socket;
    };
    onTestFinished(() => places.end());
    return { places, socketOf, socket: socketOf('a') };
  }
});

test('a connection with half a request ends within ten seconds on a real port', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { port } = await internalPort();
  const clients = await Promise.all(
    ['', 'GET /health/ready HT', tlsHello, http2Preface].map((sent) => client(port, sent)),
  );
  await answersReady(port);
  vi.advanceTimersByTime(10_000);
  await Promise.all(clients.map(({ closed }) => closed));
});
