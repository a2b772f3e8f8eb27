import { expect } from 'vitest';
import { type AppendEventsRequest, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import type { FuzzSeeds } from './fuzz-seeds.ts';
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

/** An honest call is answered, nothing is held, and no call is left. Failures name the seeds. */
export async function expectWhole(node: ListeningNode, seeds: FuzzSeeds): Promise<void> {
  const options = { timeout: 15_000, message: `${seeds}` };
  const client = grpcClient(node.grpcAddress);
  const { error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
  client.close();
  expect(error, options.message).toBeNull();
  await expect.poll(() => node.memory.heldBytes(), options).toBe(0);
  await expect.poll(() => node.pipeline.running.size, options).toBe(0);
}
