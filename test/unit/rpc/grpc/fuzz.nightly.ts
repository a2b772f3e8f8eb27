import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { ownCertificate } from '../../../support/certificate.ts';
import { FuzzSeeds } from '../../../support/fuzz-seeds.ts';
import { startFuzzedNode } from '../../../support/grpc-fuzz-rig.ts';
import { corpus, fuzzFor } from '../../../support/http2-fuzz.ts';
import { startListeningNode } from '../../../support/listening-node.ts';

vi.setConfig({ testTimeout: 600_000 });

test.each([
  { port: 'the gRPC port', tls: undefined, rounds: 12 },
  { port: 'the gRPC port with TLS', tls: ownCertificate(), rounds: 1 },
])('after many frames of all kinds $port still serves and holds nothing', async ({ tls, rounds }) => {
  await using node = await startFuzzedNode(tls);
  for (let round = 0; round < rounds; round += 1) {
    const seeds = new FuzzSeeds(corpus);
    console.log(`fuzzing HTTP/2 with ${seeds}`);
    await fuzzFor(node.target, 10_000, seeds);
    console.log(`${seeds.count} connections`);
    expect(seeds.count, `${seeds}`).toBeGreaterThan(20);
    await node.expectWhole(seeds);
  }
});

test('a TLS handshake that has not ended after 10 s ends with its connection', async () => {
  await using node = await startListeningNode({ tls: ownCertificate(), handlers: {} });
  const begun = performance.now();
  const sockets = [null, Buffer.from([0x16, 3, 1, 16, 0, 1])].map((hello) => {
    const socket = connect(node.grpc.port, '127.0.0.1', () => hello !== null && socket.write(hello));
    return socket.on('error', () => {}).resume();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'close')));
  const ms = performance.now() - begun;
  expect(ms).toBeGreaterThan(9_000);
  expect(ms).toBeLessThan(15_000);
});
