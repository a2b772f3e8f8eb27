import { connect, type IncomingHttpHeaders } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  AppendEventRequestSchema,
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  type AppendEventsResponse,
  MasterService,
} from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient, infoOf, openGrpcStream } from '../support/door-grpc.ts';
import { bearer, type DoorNode, startDoorNode } from '../support/door-node.ts';

// What grpc-js answers by itself carries no ErrorInfo, as docs/api.md tells. Should it once, these tests say so.

let node: DoorNode;
let taken = 0;

beforeAll(async () => {
  node = await startDoorNode({
    handlers: {
      'MasterService.AppendEvent': async () => {
        taken += 1;
        return {};
      },
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
        for await (const { clientIndex } of requests) {
          taken += 1;
          yield { clientIndex };
        }
      },
    },
  });
});
afterAll(() => node[Symbol.asyncDispose]());
beforeEach(() => {
  taken = 0;
});

const unary = '/svc.v1.MasterService/AppendEvent';
const mebibyte = 1024 * 1024;

/** A message as it goes over the wire (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */
function frame(message: Uint8Array, compressed = false): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(compressed ? 1 : 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Sends a POST over HTTP/2 as it is, and answers with the headers or trailers that hold grpc-status. */
async function post(path: string, headers: Record<string, string>, body: Buffer): Promise<IncomingHttpHeaders> {
  const session = connect(`http://${node.grpcAddress}`);
  try {
    return await new Promise((resolve, reject) => {
      const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
      const stream = session.request({ ':method': 'POST', ':path': path, ...grpc, ...bearer, ...headers });
      const look = (found: IncomingHttpHeaders): void => {
        if (found['grpc-status'] !== undefined) resolve(found);
      };
      stream.on('response', look).on('trailers', look).on('error', reject).on('close', reject);
      stream.resume();
      stream.end(body);
    });
  } finally {
    session.destroy();
  }
}

const small = frame(Buffer.alloc(0));
const gzip = { 'grpc-encoding': 'gzip' };

describe('what gRPC refuses by itself has a status and no ErrorInfo, and nothing of it reaches the service', () => {
  const refused: [string, string, Record<string, string>, Buffer, number][] = [
    ['an unknown method', '/svc.v1.MasterService/DropEvents', {}, small, 12],
    ['an unknown service', '/svc.v9.MasterService/AppendEvent', {}, small, 12],
    ['a message far beyond 1 MiB', unary, {}, frame(Buffer.alloc(3 * mebibyte)), 8],
    ['a message that unpacks to 64 MiB', unary, gzip, frame(gzipSync(Buffer.alloc(64 * mebibyte)), true), 8],
    ['a message packed in a way that nobody knows', unary, { 'grpc-encoding': 'x' }, frame(Buffer.alloc(9), true), 12],
    ['a message that is not packed as it says', unary, gzip, frame(Buffer.alloc(9), true), 13],
    ['no message', unary, {}, Buffer.alloc(0), 12],
    ['two messages where one is due', unary, {}, Buffer.concat([small, small]), 12],
    ['a timeout that is none', unary, { 'grpc-timeout': 'soon' }, small, 13],
  ];
  it.each(refused)('%s', async (_, path, headers, body, status) => {
    const answered = await post(path, headers, body);
    expect(answered['grpc-status']).toBe(String(status));
    expect(answered).not.toHaveProperty('grpc-status-details-bin');
    expect(taken).toBe(0);
  });

  it('a message of 1 MiB and a little more is still answered by the service, with ErrorInfo', async () => {
    const payload = 'x'.repeat(mebibyte);
    const request = toBinary(AppendEventRequestSchema, create(AppendEventRequestSchema, { payload }));
    const answered = await post(unary, {}, frame(request));
    expect(answered['grpc-status']).toBe('8');
    expect(answered).toHaveProperty('grpc-status-details-bin');
    const client = grpcClient(node.grpcAddress);
    const { info } = await callGrpc(client, MasterService.method.appendEvent, { payload }, bearer);
    client.close();
    expect([info?.reason, taken]).toEqual(['payload_too_large', 0]);
  });
});

describe('a stream both ways', () => {
  it('ends with a message far beyond 1 MiB, after the outcomes of those before it', async () => {
    const client = grpcClient(node.grpcAddress);
    const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
    const outcomes: bigint[] = [];
    stream.on('data', ({ clientIndex }: AppendEventsResponse) => outcomes.push(clientIndex));
    const ended = new Promise<Parameters<typeof infoOf>[0]>((resolve) => stream.on('error', resolve));
    stream.write({ clientIndex: 1n });
    await new Promise((resolve) => stream.once('data', resolve));
    stream.write({ clientIndex: 2n, payload: 'x'.repeat(3 * mebibyte) });
    stream.write({ clientIndex: 3n });
    const error = await ended;
    client.close();
    expect([error.code, infoOf(error), outcomes, taken]).toEqual([8, null, [1n], 1]);
    while (node.pipeline.running.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  });

  it('ends with a message that unpacks to far beyond 1 MiB, and the door goes on', async () => {
    const request = toBinary(AppendEventsRequestSchema, create(AppendEventsRequestSchema, { clientIndex: 1n }));
    const bomb = frame(gzipSync(Buffer.alloc(64 * mebibyte)), true);
    const path = '/svc.v1.MasterService/AppendEvents';
    const answered = await post(path, gzip, Buffer.concat([frame(request), bomb, frame(request)]));
    expect(answered['grpc-status']).toBe('8');
    expect(answered).not.toHaveProperty('grpc-status-details-bin');
    expect((await post(unary, {}, small))['grpc-status']).toBe('0');
  });
});
