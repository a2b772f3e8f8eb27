import { expect, onTestFinished, test } from 'vitest';
import { connectRedis, createRedis } from '../../../cluster/redis/client.ts';
import { redisNews } from '../../../cluster/redis/redis-news.ts';
import { fakeRedis } from '../../support/fake-redis.ts';

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

const newsAt = (url: string) => {
  const [redis, listener] = [createRedis(url, () => {}), createRedis(url, () => {})];
  const news = redisNews(redis, listener, 'p');
  onTestFinished(() => {
    news.close();
    redis.disconnect();
  });
  return { redis, listener, news };
};

/** Connected, for the running test. */
async function redisAt(url: string, onError: (error: Error) => void = () => {}) {
  const redis = createRedis(url, onError);
  onTestFinished(() => redis.disconnect());
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  return redis;
}

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

test('a SUBSCRIBE that Redis does not answer in time ends no node', async () => {
  const found = uncaught();
  const { url, sockets, hasHeard } = await fakeRedis((command, connection) =>
    command === 'subscribe' && connection > 1 ? null : undefined,
  );
  const { news } = newsAt(url);
  news.listen(() => {});
  await until(() => hasHeard('subscribe', 1));
  for (const socket of sockets) socket.destroy();
  await until(() => hasHeard('subscribe', 2));
  // Longer than a command may take.
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(found).toEqual([]);
});

test('a connection that is silent for several commands is replaced, and what waits for it is bounded', async () => {
  let silent = 0;
  const { url, sockets } = await fakeRedis((_, connection) => (connection <= silent ? null : undefined));
  const { redis, news } = newsAt(url);
  await connectRedis(redis);
  await until(() => redis.status === 'ready');
  silent = sockets.length;
  for (let count = 0; count < 5_000; count++) news.tell('01890a5d-ac96-774b-bcce-b302099a8057');
  expect(redis.commandQueue.length).toBeLessThanOrEqual(1_000);
  await expect(redis.ping()).rejects.toThrow('Command timed out');
  await until(() => redis.status === 'ready' && sockets.length > silent);
  expect([await redis.ping(), redis.commandQueue.length]).toEqual(['OK', 0]);
});

test('an error of this node while it hears news is reported, and ends no connection', async () => {
  const { url, sockets, hasHeard } = await fakeRedis(() => undefined);
  const [redis, listener] = [createRedis(url, () => {}), createRedis(url, () => {})];
  const failures: unknown[] = [];
  const wrong = new Error('a fault of this node');
  const fail = () => {
    throw wrong;
  };
  const news = redisNews(redis, listener, 'p', fail, (error) => void failures.push(error));
  onTestFinished(() => news.close());
  news.listen(fail);
  await until(() => hasHeard('subscribe'));
  const message = (text: string) => `*3\r\n$7\r\nmessage\r\n$8\r\nnews:{p}\r\n$${text.length}\r\n${text}\r\n`;
  for (const text of ['01890a5d-ac96-774b-bcce-b302099a8057', 'no id']) sockets[0]?.write(message(text));
  await expect.poll(() => failures).toEqual([wrong, wrong]);
  expect([listener.status, sockets.length]).toEqual(['ready', 1]);
});

test('a silent connection that listens for news is replaced', async () => {
  const { url, hasHeard } = await fakeRedis((command, connection) =>
    command === 'ping' && connection === 1 ? null : undefined,
  );
  newsAt(url).news.listen(() => {});
  await until(() => hasHeard('subscribe', 2));
});

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
  const { redis, listener, news } = newsAt(url);
  await connectRedis(redis);
  const heard: string[] = [];
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
  await redisAt(url);
  const before = sockets.length;
  sockets.at(-1)?.write('+OK\r\n');
  await until(() => sockets.length > before);
});

test('a text without an end is not read on', async () => {
  const { url, sockets } = await fakeRedis((command) => (command === 'ping' ? endless : undefined));
  const redis = await redisAt(url);
  const before = sockets.length;
  await expect(redis.ping()).rejects.toThrow();
  // Before the silence of the connection would have it replaced.
  await expect.poll(() => sockets.length, { timeout: 1_000 }).toBeGreaterThan(before);
});

test('nothing is read any more from a connection that has brought bytes that are no answer', async () => {
  const { url, sockets } = await fakeRedis(() => undefined);
  const failures: string[] = [];
  await redisAt(url, ({ message }) => void failures.push(message));
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
  const redis = await redisAt(url);
  for (const socket of sockets) socket.allowHalfOpen = true;
  redis.disconnect(true);
  await expect.poll(() => sockets.length, { timeout: 1_000 }).toBe(2);
});
