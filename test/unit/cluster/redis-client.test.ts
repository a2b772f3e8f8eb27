import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { createRedis } from '../../../cluster/redis/client.ts';
import { redisNews } from '../../../cluster/redis/redis-news.ts';

const sockets = new Set<Socket>();
const said: { connection: number; command: string }[] = [];
let connections = 0;

/** The part of Redis (RESP2) that a subscription needs. It does not answer SUBSCRIBE on the second connection. */
const server = createServer((socket) => {
  const connection = ++connections;
  sockets.add(socket);
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    for (const command of commandsIn(bytes.toString())) {
      said.push({ connection, command });
      if (command === 'hello') socket.write("-ERR unknown command 'HELLO'\r\n");
      else if (command === 'info') socket.write('$9\r\nloading:0\r\n');
      else if (command !== 'subscribe') socket.write('+OK\r\n');
      else if (connection === 1) socket.write('*3\r\n$9\r\nsubscribe\r\n$8\r\nnews:{p}\r\n:1\r\n');
    }
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

/** The names of the commands in a text of RESP arrays. */
function commandsIn(text: string): string[] {
  return [...text.matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)].map((found) => (found[1] ?? '').toLowerCase());
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

test('a SUBSCRIBE that Redis does not answer in time ends no node', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [redis, listener] = [createRedis(url, () => {}), createRedis(url, () => {})];
  const news = redisNews(redis, listener, 'p');
  const subscribed = (connection: number) =>
    said.some((line) => line.connection === connection && line.command === 'subscribe');
  news.listen(() => {});
  await until(() => subscribed(1));
  for (const socket of sockets) socket.destroy();
  await until(() => subscribed(2));
  // Longer than a command may take.
  await new Promise((resolve) => setTimeout(resolve, 800));
  news.close();
  redis.disconnect();
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});
