import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { onLoopback } from './loopback.ts';

/** The bytes to answer a command with, or null for silence. `connection`: its number, from 1. */
type FakeAnswer = (command: string, connection: number) => string | null;

const subscribed = '*3\r\n$9\r\nsubscribe\r\n$8\r\nnews:{p}\r\n:1\r\n';

/** The part of Redis (RESP2) that a connection needs. It answers as `over` says, and by its own where that is undefined. */
export async function fakeRedis(over: (...asked: Parameters<FakeAnswer>) => string | null | undefined) {
  const sockets: Socket[] = [];
  const said: { readonly connection: number; readonly command: string }[] = [];
  const answer: FakeAnswer = (command, connection) => {
    const own = over(command, connection);
    if (own !== undefined) return own;
    if (command === 'hello') return "-ERR unknown command 'HELLO'\r\n";
    if (command === 'info') return '$9\r\nloading:0\r\n';
    return command === 'subscribe' ? subscribed : '+OK\r\n';
  };
  const server = createServer((socket) => {
    const connection = sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (const command of commandsIn(bytes.toString())) {
        said.push({ connection, command });
        const answered = answer(command, connection);
        if (answered !== null) socket.write(answered);
      }
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = `redis://127.0.0.1:${await onLoopback(server)}`;
  const hasHeard = (command: string, connection?: number) =>
    said.some((line) => line.command === command && line.connection === (connection ?? line.connection));
  return { url, sockets, hasHeard };
}

/** The names of the commands in a text of RESP arrays. */
function commandsIn(text: string): string[] {
  return [...text.matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)].map((found) => (found[1] ?? '').toLowerCase());
}
