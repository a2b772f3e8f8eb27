import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { HttpConnections } from '../../../../src/rpc/http/connections.ts';
import type { HttpHandler } from '../../../../src/rpc/http/response.ts';
import { createHttpServer } from '../../../../src/rpc/http/server.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { onLoopback } from '../../../support/loopback.ts';

test('an idle connection stays open longer than its client was told, because the client may be late', async () => {
  const answers: HttpHandler = (_request, response) => response.end();
  using connections = new HttpConnections(new MemoryBudget(1024 * 1024), [], 100, () => performance.now());
  const requests = { serve: answers, refuseExpect: answers, refused: () => {} };
  const server = createHttpServer(requests, null, () => 'id', connections);
  server.keepAliveTimeout = 1_000;
  const socket = connect(await onLoopback(server), '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const answer = async () => {
    socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n');
    const [bytes] = await once(socket, 'data');
    return String(bytes);
  };
  expect(await answer()).toMatch(/^keep-alive: timeout=1\r$/im);
  await new Promise((resolve) => setTimeout(resolve, limits.keepAliveBufferMs - 1_000));
  expect(await answer()).toMatch(/^HTTP\/1.1 200 /);
  const ended = once(socket, 'close');
  socket.resume();
  await ended;
});
