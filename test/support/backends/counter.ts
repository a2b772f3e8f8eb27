import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BackendName, Backends } from './backend.ts';

/** Where test processes ask for backends over a socket, so that one of each serves them all. */
interface Counter extends AsyncDisposable {
  readonly path: string;
}

/** Serves `backends` to each client that connects and writes a name: the answer is one line of JSON. */
export async function openCounter(backends: Backends): Promise<Counter> {
  const path = join(tmpdir(), `lts-backends-${process.pid}.sock`);
  await rm(path, { force: true });
  const server = createServer((socket) => void serve(socket, backends));
  server.listen(path);
  await once(server, 'listening');
  return { path, [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

async function serve(socket: Socket, backends: Backends): Promise<void> {
  socket.on('error', () => {});
  const [asked] = (await once(socket, 'data')) as [Buffer];
  const name = asked.toString().trim();
  if (name !== 'cassandra' && name !== 'redis') {
    socket.destroy();
    return;
  }
  const backend = await backends[name]().catch((error: unknown) => ({ kind: 'missing', reason: String(error) }));
  socket.end(`${JSON.stringify(backend)}\n`);
}

/** The backends behind a counter's socket. */
export function backendsAt(path: string): Backends {
  const ask = async <T>(name: BackendName): Promise<T> => {
    const socket = connect(path);
    await once(socket, 'connect');
    socket.write(`${name}\n`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    return JSON.parse(text) as T;
  };
  return { cassandra: () => ask('cassandra'), redis: () => ask('redis') };
}
