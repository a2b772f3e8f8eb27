import { expect, onTestFinished, test } from 'vitest';
import { connectRedis, createRedis } from '../../../cluster/redis/client.ts';
import { redisNews } from '../../../cluster/redis/redis-news.ts';
import { fakeRedis } from '../../support/fake-redis.ts';

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

/** Collects what would end the process. */
function uncaught(): unknown[] {
  const found: unknown[] = [];
  const note = (error: unknown) => void found.push(error);
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, note);
  onTestFinished(() => {
    for (const event of ['uncaughtException', 'unhandledRejection']) process.off(event, note);
  });
  return found;
}

const text = (content: string) => `$${content.length}\r\n${content}\r\n`;
const endless = `$99999999999\r\n${'x'.repeat(20 * 1024 * 1024)}`;

const unasked: Readonly<Record<string, string>> = {
  'an answer that is nil': '$-1\r\n',
  'an answer that is nil, as RESP3 writes it': '_\r\n',
  'a list that is nil': '*-1\r\n',
  'a list of a negative length': '*-5\r\n',
  'a list of nil': '*1\r\n$-1\r\n',
  'an empty list': '*0\r\n',
  'a message without a channel': `*3\r\n${text('message')}$-1\r\n$-1\r\n`,
  'a push of nil': '>1\r\n_\r\n',
  'a push that subscribes to nothing': '>3\r\n+subscribe\r\n_\r\n:1\r\n',
  'a text without an end': endless,
  'bytes that are no answer': 'hello\r\n',
  'lists in lists': '*1\r\n'.repeat(200_000),
};

const resp3: Readonly<Record<string, string>> = {
  hello: '%1\r\n+proto\r\n:3\r\n',
  subscribe: `>3\r\n${text('subscribe')}${text('news:{p}')}:1\r\n`,
};
const cases = Object.entries(unasked).flatMap(([what, bytes]) => [
  { what, bytes, protocol: 'RESP2', own: {} as typeof resp3 },
  { what, bytes, protocol: 'RESP3', own: resp3 },
]);

test.each(cases)('$what, unasked for, ends a connection to Redis at most ($protocol)', async ({ bytes, own }) => {
  const found = uncaught();
  const { url, sockets, hasHeard } = await fakeRedis((command) => own[command]);
  const [redis, listener] = [createRedis(url, () => {}), createRedis(url, () => {})];
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  const heard: string[] = [];
  const news = redisNews(redis, listener, 'p');
  onTestFinished(() => news.close());
  news.listen((id) => void heard.push(id));
  await until(() => hasHeard('subscribe') && redis.status === 'ready');
  for (const socket of sockets) socket.write(bytes);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await expect.poll(() => redis.ping().catch(() => null), { timeout: 20_000 }).not.toBeNull();
  await until(() => listener.status === 'ready');
  expect([found, heard]).toEqual([[], []]);
});

test('an answer that nobody asked for ends the connection', async () => {
  const { url, sockets } = await fakeRedis(() => undefined);
  const redis = createRedis(url, () => {});
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  const before = sockets.length;
  sockets.at(-1)?.write('+OK\r\n');
  await until(() => sockets.length > before);
});

test('a text without an end is not read on', async () => {
  const { url, sockets } = await fakeRedis((command) => (command === 'ping' ? endless : undefined));
  const redis = createRedis(url, () => {});
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  const before = sockets.length;
  await expect(redis.ping()).rejects.toThrow();
  // Before the silence of the connection would have it replaced.
  await expect.poll(() => sockets.length, { timeout: 1_000 }).toBeGreaterThan(before);
});

test('nothing is read any more from a connection that has brought bytes that are no answer', async () => {
  const { url, sockets } = await fakeRedis(() => undefined);
  const failures: string[] = [];
  const redis = createRedis(url, ({ message }) => void failures.push(message));
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  const [broken] = sockets;
  if (broken === undefined) throw new Error('no connection');
  broken.allowHalfOpen = true;
  broken.setNoDelay();
  // The other side does not end the connection: if it were read on, each of these would be one more failure.
  while (sockets.length === 1) {
    broken.write('hello\r\n');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(failures.filter((message) => message.includes('Please report this'))).toHaveLength(1);
});

test('a connection whose other side does not end it is replaced soon', async () => {
  const { url, sockets } = await fakeRedis(() => undefined);
  const redis = createRedis(url, () => {});
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  for (const socket of sockets) socket.allowHalfOpen = true;
  redis.disconnect(true);
  await expect.poll(() => sockets.length, { timeout: 1_000 }).toBe(2);
});
