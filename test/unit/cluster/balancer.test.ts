import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type BalancedNode, type Balancer, startBalancer } from '../../../cluster/local/balancer.ts';

interface FakeNode extends BalancedNode {
  readonly name: string;
  ready: boolean;
  close(): void;
}

const opened: { close(): void }[] = [];
let balancer: Balancer;
afterEach(async () => {
  await balancer[Symbol.asyncDispose]();
  for (const node of opened.splice(0)) node.close();
});

async function listen<T extends { listen(port: number, host: string): unknown; address(): unknown }>(
  server: T & NodeJS.EventEmitter,
): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

/** A node that answers its name on both ports. */
async function fakeNode(name: string): Promise<FakeNode> {
  const http: Server = createServer((_, response) => response.end(name));
  const grpc = createNetServer((socket) => socket.on('error', () => {}).end(name));
  const node = { name, ready: true };
  const internal = createServer((_, response) => response.writeHead(node.ready ? 200 : 503).end());
  const [port, grpcPort, internalPort] = await Promise.all([listen(http), listen(grpc), listen(internal)]);
  const made = Object.assign(node, {
    host: '127.0.0.1',
    port,
    grpcPort,
    internalPort,
    close: () => {
      for (const server of [http, internal]) server.close().closeAllConnections();
      grpc.close();
    },
  });
  opened.push(made);
  return made;
}

async function startWith(...names: string[]): Promise<FakeNode[]> {
  balancer = await startBalancer({ host: '127.0.0.1', port: 0, grpcPort: 0 });
  const nodes = await Promise.all(names.map(fakeNode));
  for (const node of nodes) balancer.add(node);
  await untilAsked(nodes.length);
  return nodes;
}

async function ask(): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${balancer.port}/`, { headers: { connection: 'close' } });
  return response.text();
}

async function askTimes(count: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  for (let n = 0; n < count; n += 1) {
    const name = await ask();
    answers[name] = (answers[name] ?? 0) + 1;
  }
  return answers;
}

/** Waits until so many different nodes answer. */
async function untilAsked(count: number): Promise<void> {
  await expect.poll(async () => Object.keys(await askTimes(count * 2)).length, { timeout: 5_000 }).toBe(count);
}

describe('the balancer', () => {
  test('gives connections to the nodes in turn', async () => {
    await startWith('a', 'b', 'c');
    expect(await askTimes(9)).toEqual({ a: 3, b: 3, c: 3 });
  });

  test('balances the gRPC port alike', async () => {
    await startWith('a', 'b');
    const answers = new Set<string>();
    for (let n = 0; n < 4; n += 1) {
      let text = '';
      for await (const chunk of connect(balancer.grpcPort, '127.0.0.1')) text += String(chunk);
      answers.add(text);
    }
    expect([...answers].sort()).toEqual(['a', 'b']);
  });

  test('gives no connections to a node that is not ready, until it is ready again', async () => {
    const [a] = await startWith('a', 'b');
    if (a === undefined) throw new Error('no node');
    a.ready = false;
    await expect.poll(() => askTimes(6), { timeout: 5_000 }).toEqual({ b: 6 });
    a.ready = true;
    await untilAsked(2);
  });

  test('fails no call if a node is gone', async () => {
    const [a] = await startWith('a', 'b', 'c');
    a?.close();
    // Before the next look at the nodes.
    const answers = await askTimes(12);
    expect((answers.b ?? 0) + (answers.c ?? 0)).toBe(12);
  });

  test('gives connections to a node even if none is ready', async () => {
    const nodes = await startWith('a', 'b');
    for (const node of nodes) node.ready = false;
    await expect.poll(() => askTimes(4), { timeout: 3_000 }).toEqual({ a: 4 });
  });

  test('ends a connection if no node answers', async () => {
    const [only] = await startWith('a');
    only?.close();
    await expect(ask()).rejects.toThrow();
  });

  test('does not start if a port is in use', async () => {
    await startWith('a');
    const { port } = balancer;
    await expect(startBalancer({ host: '127.0.0.1', port: 0, grpcPort: port })).rejects.toThrow('EADDRINUSE');
  });

  test('ends all connections when it ends', async () => {
    await startWith('a');
    const silent = connect(balancer.port, '127.0.0.1');
    await once(silent, 'connect');
    const closed = once(silent, 'close');
    await balancer[Symbol.asyncDispose]();
    await closed;
    await expect(ask()).rejects.toThrow();
  });
});
