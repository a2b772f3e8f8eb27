import { request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { rpcPathOf } from '../../../../src/rpc/endpoints/endpoint.ts';
import {
  bareEntityId,
  keyedEntityId,
  type ListeningNode,
  masterId,
  startListeningNode,
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

it('calls with signatures that do not verify cost their address, whichever entity they name', async () => {
  await using limited = await startListeningNode({
    grpc: false,
    rates: { call: { perSecond: 0.01, burst: 3 } },
    handlers: { 'MasterService.ListMasters': async () => ({}) },
  });
  const list = async (actorId: string, signature: string): Promise<number> => {
    const signed = { 'x-actor-sig': signature, 'x-timestamp': new Date().toISOString() };
    const headers = { ...entity, 'x-actor-id': actorId, ...signed };
    return (await fetch(`${limited.base}/v1/traceledger/master?ledger_id=x`, { headers })).status;
  };
  const statuses: number[] = [];
  for (const actorId of [keyedEntityId, bareEntityId]) {
    statuses.push(await list(actorId, 'good-signature'), await list(actorId, 'bad-signature'));
  }
  expect(statuses).toEqual([200, 401, 200, 401]);
  expect([await list(keyedEntityId, 'bad-signature'), await list(bareEntityId, 'good-signature')]).toEqual([401, 429]);
});
