import { expect } from 'vitest';
import { type AppendEventsRequest, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import type { TlsKeys } from '../../src/rpc/http/server.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import type { GrpcTarget } from './attacks/grpc-connections.ts';
import type { FuzzSeeds } from './fuzz-seeds.ts';
import { callGrpc, grpcClient } from './grpc-client.ts';
import { bearer, startListeningNode } from './listening-node.ts';

interface FuzzedNode extends AsyncDisposable {
  readonly target: GrpcTarget;
  /**
   * The fuzzer has reached handlers since the last look, an honest call is answered, nothing is held, and no call is
   * left. Failures name the seeds.
   */
  expectWhole(seeds: FuzzSeeds): Promise<void>;
}

/** Ports for a fuzzer, with handlers that answer whatever comes. They speak TLS with `tls`. */
export async function startFuzzedNode(tls?: TlsKeys & { readonly cert: Buffer }): Promise<FuzzedNode> {
  let reached = 0;
  const answer = async () => {
    reached += 1;
    return {};
  };
  const node = await startListeningNode({
    ...(tls && { tls }),
    handlers: {
      'HealthService.GetHealth': answer,
      'MasterService.AppendEvent': answer,
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
        for await (const { clientIndex } of requests) {
          reached += 1;
          yield { clientIndex };
        }
      },
    },
  });
  return {
    target: { grpc: node.grpcAddress, tls: tls !== undefined },
    async expectWhole(seeds) {
      // What a client over TLS left untaken may be held for grpcAnswerTimeoutMs.
      const options = {
        timeout: tls === undefined ? 15_000 : limits.grpcAnswerTimeoutMs + 15_000,
        message: `${seeds}`,
      };
      // Else the run did not get past the framing, or not to the node.
      if (!seeds.isOne) expect(reached, options.message).toBeGreaterThan(0);
      const client = grpcClient(node.grpcAddress, tls?.cert);
      const { error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
      client.close();
      expect(error, options.message).toBeNull();
      await expect.poll(() => node.memory.heldBytes(), options).toBe(0);
      await expect.poll(() => node.pipeline.running.size, options).toBe(0);
      reached = 0;
    },
    [Symbol.asyncDispose]: () => node[Symbol.asyncDispose](),
  };
}
