import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { type ClientOptions, createClient } from '../../src/client/index.ts';
import { onLoopback } from './loopback.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** How the service answers its `count`th call. */
type Answering = (seen: Seen, response: ServerResponse, count: number) => void;

/** A client of a server with scripted answers; waits take no time and are recorded. Both end with the test. */
export async function against(answering: Answering, options: Partial<ClientOptions> = {}) {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const started = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const call = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(call);
      answering(call, response, seen.length);
    });
  });
  const baseUrl = `http://127.0.0.1:${await onLoopback(started)}`;
  const made = createClient({
    baseUrl,
    apiKey: 'svc_sk_test_x',
    retryClock: {
      monotonicMs: () => performance.now(),
      sleep: async (ms) => {
        waits.push(ms);
      },
      random: () => 1,
    },
    ...options,
  });
  onTestFinished(async () => {
    await made.close();
    started.closeAllConnections();
    started.close();
  });
  return { client: made, seen, waits, baseUrl };
}

export function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'r-1', ...headers });
  response.end(body === null ? undefined : JSON.stringify(body));
}

export const failure = (code: string, details?: object) => ({
  error: { code, message: `It is ${code}.`, request_id: 'r-1', details },
});
export const key = { key_id: 'k', api_key: 's', environment: 'sandbox', name: 'n' };
export const ledger = {
  id: 'l',
  buyer_actor_id: 'b',
  supplier_actor_id: 's',
  status: 'OPEN',
  ledger_type: 'ORDER',
  created_at: 't',
};
