import { type Attack, answeredRequest, silentReaders } from './target.ts';

/** Asks 1,500 times for a document or page at once, over and over, and reads nothing. */
export const run: Attack = async (target, signal, connections) => {
  const requests = (await answeredRequest(target, '/openapi.json')).repeat(1_500);
  return silentReaders(target, signal, connections, Buffer.from(requests), true);
};
