import { expect } from 'vitest';
import { type AppendEventsRequest, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from './grpc-client.ts';
import { bearer, type ListeningNode, startListeningNode } from './listening-node.ts';

/** Ports for a fuzzer, with handlers that answer whatever comes. */
export function startFuzzedNode(): Promise<ListeningNode> {
  return startListeningNode({
    handlers: {
      'MasterService.AppendEvent': async () => ({}),
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
        for await (const { clientIndex } of requests) yield { clientIndex };
      },
    },
  });
}

/** An honest call is answered, nothing is held, and no call is left. */
export async function expectWhole(node: ListeningNode): Promise<void> {
  const client = grpcClient(node.grpcAddress);
  const { error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
  client.close();
  expect(error).toBeNull();
  await expect.poll(() => node.memory.heldBytes(), { timeout: 15_000 }).toBe(0);
  await expect.poll(() => node.pipeline.running.size, { timeout: 15_000 }).toBe(0);
}
