import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifyWebhook, type WebhookDelivery } from '../client/webhook.ts';

/** A webhook receiver on the loopback address. It keeps all requests that it receives. */
export interface Receiver {
  readonly url: string;
  /** Sets the secret to verify all requests with, also those received before: a subscription must exist to have one. */
  useSecret(secret: string): void;
  /**
   * The first delivery that is `wanted`. Rejects after `timeoutMs`, with the signal, or if a request does not verify.
   */
  delivery(
    wanted: (delivery: WebhookDelivery) => boolean,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<WebhookDelivery>;
  close(): Promise<void>;
}

const bodyBytesMax = 1024 * 1024;

interface Received {
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body: Buffer;
}

export async function openReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let secret: string | null = null;
  let look: () => void = () => {};
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bodyBytesMax) request.destroy();
      else chunks.push(chunk);
    });
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(204).end();
      look();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const find = (wanted: (delivery: WebhookDelivery) => boolean): WebhookDelivery | null => {
    if (secret === null) return null;
    for (const { headers, body } of received) {
      const delivery = verifyWebhook(secret, headers, body);
      if (wanted(delivery)) return delivery;
    }
    return null;
  };

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`,
    useSecret: (given) => {
      secret = given;
    },
    delivery: async (wanted, timeoutMs, signal) => {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<WebhookDelivery>();
      const late = setTimeout(() => reject(new Error(`no such delivery came within ${timeoutMs} ms`)), timeoutMs);
      const gone = (): void => reject(signal.reason);
      signal.addEventListener('abort', gone, { once: true });
      look = () => {
        try {
          const found = find(wanted);
          if (found !== null) resolve(found);
        } catch (error) {
          reject(error);
        }
      };
      look();
      try {
        return await promise;
      } finally {
        clearTimeout(late);
        signal.removeEventListener('abort', gone);
      }
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
