import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { preface, settings } from '../../../support/attacks/http2-frames.ts';
import { callGrpc, grpcClient } from '../../../support/grpc-client.ts';
import { watchHost } from '../../../support/host-watch.ts';
import { bearer, type ListeningNode, masterId, startListeningNode } from '../../../support/listening-node.ts';
import { openTextSocket } from '../../../support/raw-http.ts';

const callMs = 1_500;

async function start(begun: () => void): Promise<ListeningNode> {
  const node = await startListeningNode({
    handlers: {
      'MasterService.AppendEvent': async () => {
        begun();
        await delay(callMs);
        return { hash: 'answer' };
      },
    },
  });
  onTestFinished(() => node[Symbol.asyncDispose]());
  return node;
}

/** A client that sends nothing after its preface, not even the end of its connection. */
async function openSilent({ grpc }: ListeningNode): Promise<void> {
  const socket = openTextSocket(grpc.port, { allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.write(Buffer.concat([preface, settings()]));
  await once(socket, 'data');
}

test('a client that never ends its connection does not delay the close of the port', async () => {
  const node = await start(() => {});
  await openSilent(node);
  const [host, fromMs] = [watchHost(), performance.now()];
  await node.grpc.close(limits.stopGraceMs);
  const tookMs = performance.now() - fromMs;
  expect(tookMs).toBeGreaterThanOrEqual(limits.drainLingerMs);
  expect(tookMs).toBeLessThan(host.bound(2_000));
});

test('a call under way when the port closes gets its answer, however long others are silent', async () => {
  const begun = Promise.withResolvers<void>();
  const node = await start(begun.resolve);
  await openSilent(node);
  const client = grpcClient(node.grpcAddress);
  onTestFinished(() => client.close());
  const request = { uuid: masterId, eventType: 'A', payload: '{}' };
  const answered = callGrpc(client, MasterService.method.appendEvent, request, bearer);
  await begun.promise;
  const [host, fromMs] = [watchHost(), performance.now()];
  await node.grpc.close(limits.stopGraceMs);
  expect((await answered).message).toMatchObject({ hash: 'answer' });
  expect(performance.now() - fromMs).toBeLessThan(host.bound(callMs + 2_000));
});
