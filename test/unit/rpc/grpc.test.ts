import { connect } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, describe, expect, it } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { sha256Hex } from '../../../src/domain/keys/hash.ts';
import { DeveloperService } from '../../../src/gen/svc/v1/developer_pb.ts';
import { HealthService } from '../../../src/gen/svc/v1/health_pb.ts';
import {
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  MasterService,
} from '../../../src/gen/svc/v1/masters_pb.ts';
import type { Call } from '../../../src/service/calls/call.ts';
import { grpcMessage } from '../../support/attacks/http2-frames.ts';
import { callGrpc, grpcClient, infoOf, openGrpcStream } from '../../support/grpc-client.ts';
import { bearer, goodKey, keyedEntityId, listeningNodeForTests, masterId } from '../../support/listening-node.ts';

let taken = 0;
let streamCall: Call | null = null;

const node = await listeningNodeForTests({
  handlers: {
    'HealthService.GetHealth': async () => ({ status: 'ok' }),
    'HealthService.GetTerms': async () => {
      throw new Error('secret detail');
    },
    'DeveloperService.GetDeveloper': async (_request, call) => {
      call.setHeader('etag', '"e"');
      return { role: 'PARTICIPANT' };
    },
    'DeveloperService.RevokeApiKey': (_request, call) =>
      new Promise((_, reject) =>
        call.signal.addEventListener('abort', () => reject(new LedgerError('unavailable', 'gone'))),
      ),
    'MasterService.ListMasters': async () => ({}),
    'MasterService.AppendEvent': async () => {
      throw new LedgerError('master_closed', 'The master is closed.', { master_id: masterId });
    },
    'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>, call: Call) {
      streamCall = call;
      for await (const request of requests) {
        taken += 1;
        if (request.eventType === 'BREAK') throw new LedgerError('overloaded', 'Too much.');
        yield {
          clientIndex: request.clientIndex,
          outcome: {
            case: 'appended',
            value: { replayed: false, event: { hash: 'x'.repeat(request.eventType === 'LARGE' ? 10_000 : 0) } },
          },
        };
      }
    },
  },
});
const client = grpcClient(node.grpcAddress);
afterAll(() => client.close());

describe('unary calls', () => {
  it('are answered with a request id and the headers of the handler', async () => {
    const headers = { ...bearer, 'x-request-id': 'r-1' };
    const { message, metadata } = await callGrpc(client, DeveloperService.method.getDeveloper, {}, headers);
    expect(message).toMatchObject({ role: 'PARTICIPANT' });
    expect([metadata.get('x-request-id'), metadata.get('etag')]).toEqual([['r-1'], ['"e"']]);
  });

  it('are refused with status, message and ErrorInfo', async () => {
    const request = { uuid: masterId, payload: '{}' };
    const headers = { ...bearer, 'x-request-id': 'r-2' };
    const { error, info } = await callGrpc(client, MasterService.method.appendEvent, request, headers);
    expect([error?.code, error?.details]).toEqual([9, 'The master is closed.']);
    expect(info).toMatchObject({
      reason: 'master_closed',
      domain: 'svc',
      metadata: { request_id: 'r-2', details: JSON.stringify({ master_id: masterId }) },
    });
  });

  it('end as internal after an unexpected error, without its cause', async () => {
    const { error, info } = await callGrpc(client, HealthService.method.getTerms, {});
    expect([error?.code, info?.reason]).toEqual([13, 'internal']);
    expect(JSON.stringify(error)).not.toContain('secret detail');
  });

  it.each([
    ['a call without a credential, before its message is read,', Buffer.from('ffff', 'hex'), {}, 16, 'unauthenticated'],
    ['a bad key', {}, { authorization: 'Bearer nope' }, 16, 'invalid_api_key'],
    ['bytes that are no message', Buffer.from('ffff', 'hex'), bearer, 3, 'invalid_argument'],
    ['text that is no UTF-8', Buffer.from('1201ff', 'hex'), bearer, 3, 'invalid_argument'],
    ['a payload that is no JSON', { payload: '{' }, bearer, 3, 'invalid_json'],
    ['a payload with a key twice', { payload: '{"a":1,"a":1}' }, bearer, 3, 'duplicate_key'],
    ['a payload that is no object', { payload: '[]' }, bearer, 3, 'invalid_argument'],
    ['a message beyond 1 MiB', { payload: `{"a":"${'x'.repeat(1024 * 1024)}"}` }, bearer, 8, 'payload_too_large'],
  ])('%s is refused', async (_name, request, headers, status, reason) => {
    const sent = headers as Record<string, string>;
    const { error, info } = await callGrpc(client, MasterService.method.appendEvent, request, sent);
    expect([error?.code, info?.reason]).toEqual([status, reason]);
  });

  it('ignore unknown field numbers', async () => {
    const { message } = await callGrpc(client, HealthService.method.getHealth, Buffer.from('f87f01', 'hex'));
    expect(message).toMatchObject({ status: 'ok' });
  });

  it('of an entity are signed over POST, the method’s path and the message as received', async () => {
    const time = new Date().toISOString();
    const entity = { 'x-actor-id': keyedEntityId, 'x-actor-type': 'device' };
    const headers = { ...entity, 'x-actor-sig': 'good-signature', 'x-timestamp': time };
    const message = Buffer.from('0a0161', 'hex');
    expect((await callGrpc(client, MasterService.method.listMasters, message, headers)).error).toBe(null);
    expect(node.credentials.verified.at(-1)).toEqual({
      method: 'POST',
      path: '/svc.v1.MasterService/ListMasters',
      bodyHash: sha256Hex(message),
      timestamp: time,
    });
  });

  it('end their signal at the caller’s deadline', async () => {
    const before = node.lines.length;
    const { error } = await callGrpc(client, DeveloperService.method.revokeApiKey, { keyId: 'k' }, bearer, 100);
    expect(error?.code).toBe(4);
    await expect.poll(() => node.lines.slice(before).join()).toContain('/v1/developer/keys/{key_id}');
  });
});

describe('bidirectional streams', () => {
  const outcomesOf = (stream: ReturnType<typeof openGrpcStream>) =>
    new Promise<{ indexes: number[]; error: { code?: number } | null; reason: string | null }>((resolve) => {
      const indexes: number[] = [];
      stream.on('data', (message: { clientIndex: bigint }) => indexes.push(Number(message.clientIndex)));
      stream.on('end', () => resolve({ indexes, error: null, reason: null }));
      stream.on('error', (error: Parameters<typeof infoOf>[0]) =>
        resolve({ indexes, error, reason: infoOf(error)?.reason ?? null }),
      );
    });

  it('answer every request in order', async () => {
    const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
    const outcomes = outcomesOf(stream);
    for (let at = 0; at < 1000; at += 1) stream.write({ clientIndex: BigInt(at) });
    stream.end();
    expect((await outcomes).indexes).toEqual(Array.from({ length: 1000 }, (_, at) => at));
    expect(streamCall?.caller?.actorId).toBeDefined();
  });

  it('read nothing without a credential', async () => {
    taken = 0;
    const stream = openGrpcStream(client, MasterService.method.appendEvents);
    const outcomes = outcomesOf(stream);
    stream.write({ clientIndex: 1n });
    expect([await outcomes, taken]).toMatchObject([{ error: { code: 16 }, reason: 'unauthenticated' }, 0]);
  });

  it('end with the error that the handler throws, after the earlier outcomes', async () => {
    const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
    const outcomes = outcomesOf(stream);
    stream.write({ clientIndex: 1n });
    stream.write({ clientIndex: 2n, eventType: 'BREAK' });
    stream.write({ clientIndex: 3n });
    expect(await outcomes).toMatchObject({ indexes: [1], error: { code: 14 }, reason: 'overloaded' });
  });

  it('end within a second after the credential was revoked', async () => {
    const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
    const outcomes = outcomesOf(stream);
    stream.write({ clientIndex: 1n });
    await new Promise((resolve) => stream.once('data', resolve));
    node.credentials.revoked.add(goodKey);
    const began = Date.now();
    const { error, reason } = await outcomes;
    node.credentials.revoked.delete(goodKey);
    expect([error?.code, reason]).toEqual([16, 'invalid_api_key']);
    expect(Date.now() - began).toBeLessThan(1_000);
  });

  it('are not read while the caller does not read its outcomes, and go on once it reads', async () => {
    taken = 0;
    // grpc-js reads ahead without bound while nobody reads, so the caller is a bare HTTP/2 one.
    const session = connect(`http://${node.grpcAddress}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/svc.v1.MasterService/AppendEvents',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...bearer,
    });
    const request = toBinary(AppendEventsRequestSchema, create(AppendEventsRequestSchema, { eventType: 'LARGE' }));
    const sent = 2_000;
    stream.end(Buffer.concat(Array<Buffer>(sent).fill(grpcMessage(request))));
    const settled = async (): Promise<number> => {
      for (let last = -1; last !== taken || taken === 0; await new Promise((resolve) => setTimeout(resolve, 100)))
        last = taken;
      return taken;
    };
    expect(await settled()).toBeLessThan(200);
    let bytes = 0;
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await new Promise((resolve) => stream.on('end', resolve));
    session.close();
    expect([taken, bytes > sent * 10_000]).toEqual([sent, true]);
  });

  it('end when the caller hangs up', async () => {
    const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
    stream.on('error', () => {});
    stream.write({ clientIndex: 1n });
    await new Promise((resolve) => stream.once('data', resolve));
    expect(node.pipeline.running.size).toBeGreaterThan(0);
    stream.cancel();
    await expect.poll(() => node.pipeline.running.size).toBe(0);
  });
});
