import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { undiciSender } from '../../../../src/client/call/undici-sender.ts';
import { ownCertificate } from '../../../support/certificate.ts';

test.each([false, true])(
  'a call speaks HTTP/1.1 to a server that prefers HTTP/2 (of a live stream: %s)',
  async (isLive) => {
    const certificate = ownCertificate();
    const server = createSecureServer({ ...certificate, allowHTTP1: true });
    server.on('request', (request, response) => response.end(request.httpVersion));
    server.listen(0, 'localhost');
    await once(server, 'listening');
    const origin = `https://localhost:${(server.address() as AddressInfo).port}`;
    const sender = undiciSender(origin, { ca: certificate.cert.toString() });
    const signal = AbortSignal.timeout(5_000);
    const answer = await sender.send({ method: 'GET', path: '/', headers: {}, body: null, signal, isLive });
    expect(await answer.text()).toBe('1.1');
    await sender.close();
    server.close();
  },
);
