import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AppendEventResponse, MasterService } from '../../../src/gen/svc/v1/masters_pb.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import { bearer, listeningNodeForTests, masterId } from '../../support/listening-node.ts';

const memory = new MemoryBudget(16 * 1024 * 1024);
const handlers = { 'MasterService.AppendEvent': async () => ({ seq: 5n }) };
const node = await listeningNodeForTests({ handlers, memory });
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());
// More than all, as what was answered and is not read may be.
beforeAll(() => memory.add('answer', 20 * 1024 * 1024));

/** Returns the seq that an append was answered with, or the error's message. */
const transports: Readonly<Record<string, (payload: string) => Promise<string>>> = {
  REST: async (payload) => {
    const answer = await fetch(`${node.base}/v1/traceledger/master/${masterId}/events`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: `{"event_type":"A","payload":${payload}}`,
    });
    const said = JSON.parse(await answer.text()) as { seq?: number; error?: { message: string } };
    return String(said.seq ?? said.error?.message);
  },
  Connect: async (payload) => {
    const body = JSON.stringify({ uuid: masterId, eventType: 'A', payload });
    const headers = { ...bearer, 'content-type': 'application/json' };
    const answer = await fetch(`${node.base}/svc.v1.MasterService/AppendEvent`, { method: 'POST', headers, body });
    const said = JSON.parse(await answer.text()) as { seq?: string; message?: string };
    return String(said.seq ?? said.message);
  },
  gRPC: async (payload) => {
    const request = { uuid: masterId, eventType: 'A', payload };
    const { message, error } = await callGrpc(grpc, MasterService.method.appendEvent, request, bearer);
    return error === null ? String((message as AppendEventResponse | null)?.seq) : error.details;
  },
};

test.each(Object.entries(transports))(
  'an append over %s is served while the memory budget is full',
  async (_, append) => {
    expect(await append('{}')).toBe('5');
    expect(await append(JSON.stringify({ text: 'x'.repeat(200_000) }))).toContain('as much in memory as it may');
    await expect.poll(() => memory.heldBytes('small')).toBe(0);
  },
);
