import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../../../src/client/index.ts';

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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
