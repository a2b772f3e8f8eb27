import { expect } from 'vitest';
import { type AppendEventsRequest, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from './door-grpc.ts';
import { bearer, type DoorNode, startDoorNode } from './door-node.ts';

/** Ports for a fuzzer, with handlers that answer whatever comes. */
export function startFuzzedNode(): Promise<DoorNode> {
  return startDoorNode({
    handlers: {
      'MasterService.AppendEvent': async () => ({}),
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
        for await (const { clientIndex } of requests) yield { clientIndex };
      },
    },
  });
}

/** An honest call is answered, nothing is held, and no call is left. */
export async function expectWhole(node: DoorNode): Promise<void> {
  const client = grpcClient(node.grpcAddress);
  const { error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
  client.close();
  expect(error).toBeNull();
  await expect.poll(() => node.memory.heldBytes(), { timeout: 15_000 }).toBe(0);
  await expect.poll(() => node.pipeline.running.size, { timeout: 15_000 }).toBe(0);
}
