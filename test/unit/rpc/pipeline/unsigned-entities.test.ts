import { request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { rpcPathOf } from '../../../../src/rpc/endpoints/endpoint.ts';
import {
  bareEntityId,
  keyedEntityId,
  type ListeningNode,
  masterId,
  startListeningNode,
  thirdEntityId,
} from '../../../support/listening-node.ts';

/** Identity headers name an entity that anybody can name. Only a signature proves its caller. */

let node: ListeningNode;
let session: ClientHttp2Session;

beforeAll(async () => {
  const handler = async () => ({});
  node = await startListeningNode({
    handlers: { 'MasterService.AppendEvent': handler, 'EngagementService.CreateEngagement': handler },
  });
  session = connect(`http://${node.grpcAddress}`);
});
afterAll(async () => {
  session.destroy();
  await node[Symbol.asyncDispose]();
});

const entity = { 'x-actor-id': keyedEntityId, 'x-actor-type': 'device' };

/** Begins a request whose body never comes, and returns the answer. */
function answerTo(path: string, contentType: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { ...entity, 'content-type': contentType, 'content-length': 1_000 };
    const sent = request(`${node.base}${path}`, { method: 'POST', headers }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => {
        text += chunk;
        if (!text.endsWith('}')) return;
        resolve(`${answer.statusCode} ${text}`);
        sent.destroy();
      });
    });
    sent.on('error', reject).flushHeaders();
  });
}

const append = rpcPathOf(MasterService.method.appendEvent);

it.each([
  ['an event over REST', `/v1/traceledger/master/${masterId}/events`, 'application/json'],
  ['a request over REST', '/v1/engagements', 'application/json'],
  ['an event over Connect', append, 'application/proto'],
])('%s of an entity that must sign and has not is refused before its body comes', async (_, path, contentType) => {
  const answer = await answerTo(path, contentType);
  expect(answer).toMatch(/^401 /);
  expect(answer).toMatch(/X-Actor-Sig/);
});

it('an event over gRPC of an entity that must sign and has not is refused before its message comes', async () => {
  const stream = session.request({
    ':method': 'POST',
    ':path': append,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...entity,
  });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(500_000, 1);
  stream.write(Buffer.concat([head, Buffer.alloc(100_000)]));
  const answer = await new Promise<string>((resolve, reject) => {
    const look = (headers: Record<string, unknown>) =>
      headers['grpc-status'] !== undefined &&
      resolve(`${headers['grpc-status']} ${Buffer.from(String(headers['grpc-status-details-bin']), 'base64')}`);
    stream.on('response', look).on('trailers', look).on('error', reject).resume();
  });
  expect(answer).toMatch(/^16 /);
  expect(answer).toContain('signature_required');
});

describe('calls of entities', () => {
  const path = rpcPathOf(MasterService.method.listMasters);
  /** Each call takes 1 + 15 from an address that has 30, and more than its caller has. */
  const body = JSON.stringify({ ledgerId: ','.repeat(1_000) });

  async function statusesOf(...calls: (readonly [actorId: string, signature: string])[]): Promise<number[]> {
    await using limited = await startListeningNode({
      grpc: false,
      rates: { call: { perSecond: 0.01, burst: 3 } },
      handlers: { 'MasterService.ListMasters': async () => ({}) },
    });
    const statuses: number[] = [];
    for (const [actorId, signature] of calls) {
      const signed = { 'x-actor-sig': signature, 'x-timestamp': new Date().toISOString() };
      const headers = { ...entity, 'content-type': 'application/json', 'x-actor-id': actorId, ...signed };
      statuses.push((await fetch(`${limited.base}${path}`, { method: 'POST', headers, body })).status);
    }
    return statuses;
  }

  it('cost their address if their signatures do not verify, whichever entity they name', async () => {
    const calls = [keyedEntityId, bareEntityId, thirdEntityId].map((id) => [id, 'bad-signature'] as const);
    expect(await statusesOf(...calls)).toEqual([401, 401, 429]);
  });

  it('cost their address nothing once their signatures have verified', async () => {
    const calls = [keyedEntityId, bareEntityId, thirdEntityId].map((id) => [id, 'good-signature'] as const);
    expect(await statusesOf(...calls)).toEqual([200, 200, 200]);
  });
});
