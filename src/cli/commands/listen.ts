import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import { verifyWebhook, type WebhookDelivery } from '../../client/webhook.ts';
import { isWebhookSecret } from '../../domain/keys/webhook-signature.ts';
import { urlHost } from '../../runtime/config/url-host.ts';
import { shownJson, shownText } from '../terminal/shown-text.ts';
import { CliError, inputError, readInput, reasonOf, type Terminal, usageError } from '../terminal/terminal.ts';

interface ListenOptions {
  readonly secret: string;
  readonly port: string;
  readonly host: string;
  readonly count?: string;
  readonly json?: boolean;
}

/** A payload of 256 KiB with the fields around it, and some reserve. */
const bodyMaxBytes = 1024 * 1024;
const bodyTimeoutMs = 10_000;
const closeIdleEveryMs = 20;

/** `ledger-trust listen`: a webhook receiver for trying them out. It receives, checks and prints deliveries. */
export function addListen(program: Command, terminal: Terminal): void {
  program
    .command('listen')
    .description('Receive webhooks on this machine, check their signatures and print them, until interrupted.')
    .requiredOption('--secret <file>', 'file that holds the secret of the subscription (whsec_…), or - for stdin')
    .option('--port <port>', 'port to listen on; 0 for any', '4000')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--count <n>', 'end after so many good deliveries')
    .option('--json', 'print each delivery as a line of JSON')
    .action(async (options: ListenOptions) => {
      const secret = (await readInput(terminal, options.secret)).toString('utf8').trim();
      if (!isWebhookSecret(secret)) throw inputError(`${options.secret} holds no secret (whsec_…).`);
      await listen(terminal, secret, options);
    });
}

async function listen(terminal: Terminal, secret: string, options: ListenOptions): Promise<void> {
  const countMax = options.count === undefined ? Number.POSITIVE_INFINITY : wholeNumber('--count', options.count);
  const port = wholeNumber('--port', options.port);
  const ended = Promise.withResolvers<void>();
  let count = 0;
  // Imported here, because it loads a whole HTTP client.
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    receive(terminal, secret, request, response, options.json === true)
      .then((good) => {
        count += good ? 1 : 0;
        if (count >= countMax) ended.resolve();
      })
      .catch(ended.reject);
  });
  server.requestTimeout = bodyTimeoutMs;
  server.on('error', (error) => ended.reject(new CliError(`Port ${port} cannot be listened on: ${reasonOf(error)}.`)));
  server.listen(port, options.host, () => {
    const { address, port: bound } = server.address() as AddressInfo;
    terminal.tell(`Listening on http://${urlHost(address)}:${bound}/ — subscribe this URL to receive events here.\n`);
  });
  const interrupted = () => ended.resolve();
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    await ended.promise;
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    await new Promise<void>((closed) => {
      // Keep-alive connections would hold the process until their senders close them.
      const close = setInterval(() => server.closeIdleConnections(), closeIdleEveryMs);
      server.close(() => {
        clearInterval(close);
        closed();
      });
    });
  }
}

/** Answers 204 to a good delivery once it is printed, and 401 to anything else. Resolves with whether it was good. */
async function receive(
  terminal: Terminal,
  secret: string,
  request: IncomingMessage,
  response: ServerResponse,
  asJson: boolean,
): Promise<boolean> {
  const body = await readBody(request).catch(() => null);
  let delivery: WebhookDelivery;
  try {
    if (body === null) throw new Error('its body is too long, or broke off.');
    delivery = verifyWebhook(secret, request.headers, body, { now: () => terminal.now() });
  } catch (error) {
    terminal.tell(`refused: ${shownText(error instanceof Error ? error.message : String(error))}\n`);
    response.writeHead(401, { connection: 'close' }).end();
    return false;
  }
  await terminal.print(asJson ? `${shownJson(JSON.stringify(delivery))}\n` : `${lineOf(delivery)}\n`);
  response.writeHead(204).end();
  return true;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > bodyMaxBytes) throw new RangeError('too long');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

function lineOf({ event }: WebhookDelivery): string {
  const place = event.ledgerId === null ? 'no ledger' : `ledger ${event.ledgerId} seq ${event.seq}`;
  const first = shownText(`${event.createdAt}  ${event.eventType}  ${event.id}  ${place}`);
  return `${first}\n  ${shownJson(JSON.stringify(event.payload))}`;
}

function wholeNumber(option: string, value: string): number {
  if (!/^\d{1,9}$/.test(value) || (option === '--port' && Number(value) > 65_535))
    throw usageError(`Option ${option} takes a whole number; it is ${JSON.stringify(value)}.`);
  return Number(value);
}
