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

test('a SUBSCRIBE that Redis does not answer in time ends no node', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on('unhandledRejection', note);
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
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
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
