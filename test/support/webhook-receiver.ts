import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fields } from './parties-rest.ts';

export interface ReceivedWebhook {
  readonly headers: IncomingHttpHeaders;
  readonly raw: Buffer;
  readonly path: string;
  readonly event: Fields;
}

/** A receiver of webhooks on loopback. */
export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly received: ReceivedWebhook[];
  /** How many connections were made to it. */
  readonly connections: () => number;
  /** The status that it answers from now on. null: it does not answer. */
  answer: number | null;
  /** How long it takes to answer, ms. */
  answerAfterMs: number;
  /** Resolves when it has received so many. Rejects after 15 s. */
  until(count: number): Promise<void>;
}

export async function receiveWebhooks(port = 0): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const waiting = new Set<() => void>();
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const raw = Buffer.concat(chunks);
      const { event } = JSON.parse(raw.toString()) as { event: Fields };
      received.push({ headers: request.headers, raw, path: request.url ?? '', event });
      const { answer } = receiver;
      if (answer !== null) setTimeout(() => response.writeHead(answer).end(), receiver.answerAfterMs);
      for (const look of waiting) look();
    });
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    connections: () => connections,
    answer: 200,
    answerAfterMs: 0,
    until: (count) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`${received.length} of ${count} webhooks came`)), 15_000);
        const look = () => {
          if (received.length < count) return;
          clearTimeout(late);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return receiver;
}

/** Asks again until the answer `isSo`. Throws after 15 s, with the last answer. */
export async function eventually<T>(ask: () => Promise<T>, isSo: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + 15_000;
  for (;;) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
