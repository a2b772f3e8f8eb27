import { setTimeout as delay } from 'node:timers/promises';
import { HealthService } from '../../../src/gen/svc/v1/health_pb.ts';
import { MasterService } from '../../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from '../grpc-client.ts';
import type { GrpcTarget } from './grpc-connections.ts';
import { ownLedger, type ReadTarget } from './read-target.ts';

/**
 * Appends of 64 KiB with wrong signatures, whose errors repeat what was to be signed, and calls beside them on the same
 * connection, which must stay open. Resolves to how many errors came.
 */
export async function run(target: GrpcTarget & ReadTarget, signal: AbortSignal, callsAtOnce: number): Promise<number> {
  const { masterId, apiKeys } = await ownLedger(target, signal, { events: 0, payloadBytes: 0, signed: true });
  const wrong = { uuid: masterId, eventType: 'ECHOED', payload: JSON.stringify({ text: 'x'.repeat(65_536) }) };
  const signature = { 'x-actor-sig': Buffer.alloc(64).toString('base64') };
  const client = grpcClient(target.grpc);
  let refused = 0;
  const one = async (_: unknown, at: number): Promise<void> => {
    const headers = { ...signature, authorization: `Bearer ${apiKeys[at % apiKeys.length]}` };
    while (!signal.aborted) {
      const [{ info }, { error, info: known }] = await Promise.all([
        callGrpc(client, MasterService.method.appendEvent, wrong, headers),
        callGrpc(client, HealthService.method.getHealth, {}),
      ]);
      if (info?.reason === 'invalid_signature') refused += 1;
      // An error of the node has details; without them the connection has ended.
      if (error !== null && known === null)
        throw new Error('The connection of the innocent calls ended', { cause: error });
      await delay(10);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, one));
  client.close();
  return refused;
}
