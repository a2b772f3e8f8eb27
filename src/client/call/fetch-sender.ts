import { type HttpSender, textOf } from './http-sender.ts';
import { connectionError } from './rest-error.ts';

/** Sends by fetch, without cookies. */
export function fetchSender(origin: string): HttpSender {
  return {
    async send({ method, path, headers, body, signal }) {
      const answer = await connected(
        fetch(origin + path, {
          method,
          headers,
          // A copy: fetch takes no bytes of shared memory.
          body: body === null ? null : new Uint8Array(body),
          signal,
          redirect: 'manual',
          credentials: 'omit',
          cache: 'no-store',
        }),
      );
      return {
        status: answer.status === 0 ? REDIRECT_STATUS : answer.status,
        header: (name) => answer.headers.get(name),
        text: () => textOf(answer.status, chunksOf(answer)),
        chunks: () => chunksOf(answer),
      };
    },
    async close() {},
  };
}

/** Browsers hide what a redirect says: its status is 0. */
const REDIRECT_STATUS = 302;

/** A reader, because not all browsers iterate over streams. Ending the iteration early ends the connection. */
async function* chunksOf(answer: Response): AsyncIterable<Uint8Array> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await connected(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** fetch rejects with TypeError if no answer arrives. Of the client, TypeError is for wrong requests alone. */
async function connected<T>(running: Promise<T>): Promise<T> {
  try {
    return await running;
  } catch (error) {
    throw error instanceof TypeError ? connectionError(error) : error;
  }
}
