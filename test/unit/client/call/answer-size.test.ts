import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../../../src/client/index.ts';
import { onLoopback } from '../../../support/loopback.ts';

it.each(['a call', 'a live stream'])('the endless body of an error ends %s with invalid_answer', async (kind) => {
  const chunk = Buffer.alloc(4 * 1024 * 1024, ' ');
  const server = createServer((_, response) => {
    response.writeHead(400, { 'content-type': 'application/json' });
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more);
    more();
  });
  const baseUrl = `http://127.0.0.1:${await onLoopback(server)}`;
  const client = createClient({ baseUrl, apiKey: 'k' });
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  const call =
    kind === 'a call'
      ? client.getAuthority()
      : client.follow({ ledgerId: 'l', after: -1 })[Symbol.asyncIterator]().next();
  await expect(call).rejects.toMatchObject({ code: 'invalid_answer' });
});
