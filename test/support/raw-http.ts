import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A connection to a port of this machine, whose errors are nobody's affair. */
export function openSocket(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  return socket;
}

export type TextSocket = Socket & { text: string };

/** A connection that gathers in `text` what it receives. */
export function openTextSocket(
  port: number,
  options: { readonly allowHalfOpen?: boolean; readonly localAddress?: string } = {},
): TextSocket {
  const socket = Object.assign(connect({ port, host: '127.0.0.1', ...options }), { text: '' });
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    socket.text += chunk.toString('latin1');
  });
  return socket;
}

/** A port that takes connections and says nothing. */
export async function silentPort() {
  const taken: Socket[] = [];
  const server = createServer((socket) => void taken.push(socket)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of taken) socket.destroy();
    await closed;
  };
  onTestFinished(close);
  return { port: address.port, close };
}

/** A port at which nothing listens. */
export async function freePort(): Promise<number> {
  const { port, close } = await silentPort();
  await close();
  return port;
}

/** Samples a value each millisecond. The returned function stops that and returns the largest value. */
export function sampleMost(read: () => number): () => number {
  let most = 0;
  const sampling = setInterval(() => {
    most = Math.max(most, read());
  }, 1);
  return () => {
    clearInterval(sampling);
    return most;
  };
}

/** Sends bytes as they are and gathers what comes back until the server ends, or for some time. */
export function sendRaw(port: number, bytes: string | string[], waitMs = 3_000): Promise<string> {
  return new Promise((resolve) => {
    const socket = openTextSocket(port);
    const late = setTimeout(() => socket.destroy(), waitMs);
    socket.on('close', () => {
      clearTimeout(late);
      resolve(socket.text);
    });
    for (const part of [bytes].flat()) socket.write(part, 'latin1');
  });
}

/** Status and error code of the first answer. */
export function parts(answer: string): { status: number; code: string | undefined } {
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const json = body.startsWith('{') ? (JSON.parse(body) as { error?: { code: string } }) : {};
  return { status: Number(answer.slice(9, 12)), code: json.error?.code };
}
