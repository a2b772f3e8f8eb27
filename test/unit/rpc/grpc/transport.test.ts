import { connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { StatusSchema } from '../../../../src/gen/google/rpc/status_pb.ts';
import {
  AppendEventRequestSchema,
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  type AppendEventsResponse,
  MasterService,
} from '../../../../src/gen/svc/v1/masters_pb.ts';
import { grpcMessage } from '../../../support/attacks/http2-frames.ts';
import { callGrpc, grpcClient, infoIn, infoOf, openGrpcStream } from '../../../support/grpc-client.ts';
import { bearer, listeningNodeForTests } from '../../../support/listening-node.ts';

let taken = 0;

const node = await listeningNodeForTests({
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
beforeEach(() => {
  taken = 0;
  node.lines.length = 0;
});

const unary = '/svc.v1.MasterService/AppendEvent';
const mebibyte = 1024 * 1024;

const packedFrame = (message: Uint8Array) => grpcMessage(message, 1);

/**
 * Sends a POST over HTTP/2 as it is (null: a body that never comes), and answers with the headers or trailers that hold
 * `last`.
 */
async function post(
  path: string,
  headers: Record<string, string>,
  body: Buffer | null,
  last = 'grpc-status',
): Promise<IncomingHttpHeaders> {
  const session = connect(`http://${node.grpcAddress}`);
  try {
    return await new Promise((resolve, reject) => {
      const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
      const stream = session.request({ ':method': 'POST', ':path': path, ...grpc, ...bearer, ...headers });
      const look = (found: IncomingHttpHeaders) => found[last] !== undefined && resolve(found);
      stream.on('response', look).on('trailers', look).on('error', reject).on('close', reject);
      stream.resume();
      if (body !== null) stream.end(body);
    });
  } finally {
    session.destroy();
  }
}

const small = grpcMessage(Buffer.alloc(0));
const gzip = { 'grpc-encoding': 'gzip' };

/** What an answer says: status, reason of its ErrorInfo, request ids of header and ErrorInfo. */
function said(answered: IncomingHttpHeaders): object {
  const details = Buffer.from(String(answered['grpc-status-details-bin'] ?? ''), 'base64');
  const status = fromBinary(StatusSchema, details);
  const info = infoIn(status);
  const ids = [answered['x-request-id'], info?.metadata.request_id];
  expect([String(status.code), encodeURI(status.message)]).toEqual([answered['grpc-status'], answered['grpc-message']]);
  return { status: Number(answered['grpc-status']), reason: info?.reason, domain: info?.domain, ids };
}

/** The lines that there are, once there is one and time for more. */
async function lines(): Promise<unknown[]> {
  await expect.poll(() => node.lines.length).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 20));
  return node.lines.map((line) => JSON.parse(line));
}

describe('a refusal by grpc-js has ErrorInfo and one log line, and does not reach the service', () => {
  const stream = '/svc.v1.MasterService/AppendEvents';
  const health = '/grpc.health.v1.Health/Check';
  const unknownPaths = [
    '/svc.v1.MasterService/Secret',
    '/secret.v9.MasterService/AppendEvent',
    '/grpc.secret.v1.Health/Check',
    '/unknown',
  ];
  const large = grpcMessage(Buffer.alloc(3 * mebibyte));
  const bomb = packedFrame(gzipSync(Buffer.alloc(64 * mebibyte)));
  const secretly = { 'grpc-encoding': 'secret' };
  const packed = packedFrame(Buffer.alloc(9));
  const twice = Buffer.concat([small, small]);
  type Refused = [name: string, path: string, Record<string, string>, Buffer, status: number, reason: string];
  const refused: Refused[] = [
    ...unknownPaths.map((path): Refused => [`what is at ${path}`, path, {}, small, 12, 'route_not_found']),
    ['an unknown method with a large message', '/secret', {}, large, 12, 'route_not_found'],
    ['a message far beyond 1 MiB', unary, {}, large, 8, 'payload_too_large'],
    ['a message that unpacks to 64 MiB', unary, gzip, bomb, 8, 'payload_too_large'],
    ['a message with an unknown encoding', unary, secretly, packed, 12, 'unsupported_media_type'],
    ['a message that is not in its encoding', unary, gzip, packed, 13, 'invalid_argument'],
    ['no message', unary, {}, Buffer.alloc(0), 12, 'invalid_argument'],
    ['two messages in place of one', unary, {}, twice, 12, 'invalid_argument'],
    ['a malformed timeout', unary, { 'grpc-timeout': 'secret' }, small, 13, 'invalid_argument'],
    ['the health of an unknown service', health, {}, grpcMessage(Buffer.from([10, 1, 120])), 5, 'not_found'],
    ['a health check that is no request', health, {}, grpcMessage(Buffer.from([10])), 3, 'invalid_argument'],
    ['a message of a stream far beyond 1 MiB', stream, {}, large, 8, 'payload_too_large'],
    ['a message of a stream with an unknown encoding', stream, secretly, packed, 3, 'unsupported_media_type'],
    ['a malformed timeout of a stream', stream, { 'grpc-timeout': 'secret' }, small, 3, 'invalid_argument'],
  ];
  it.each(refused)('%s', async (_, path, headers, body, status, reason) => {
    const answered = await post(path, { ...headers, 'x-request-id': 'r-1' }, body);
    expect(said(answered)).toEqual({ status, reason, domain: 'svc', ids: ['r-1', 'r-1'] });
    expect(taken).toBe(0);
    // A compressed message is unpacked only after its caller was let in, so its line is that of a call.
    const isCall = path === unary && headers['grpc-encoding'] !== undefined;
    const refusedRoute = [unary, stream, health].includes(path) ? path : 'none';
    const route = isCall ? '/v1/traceledger/master/{uuid}/events' : refusedRoute;
    const line = { transport: 'grpc', method: 'POST', route, code: reason, ms: expect.any(Number), request_id: 'r-1' };
    expect(await lines()).toMatchObject([line]);
    expect(node.lines[0]).not.toMatch(/secret/i);
  });

  it('a caller that sends no request id gets one', async () => {
    const answered = await post('/nothing', {}, small);
    const [line] = (await lines()) as { request_id: string }[];
    expect(said(answered)).toMatchObject({ ids: [line?.request_id, line?.request_id] });
    expect(line?.request_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('a request with another media type gets status 415 of HTTP, and one log line', async () => {
    const answered = await post(unary, { 'content-type': 'application/json', 'x-request-id': 'r-1' }, small, ':status');
    expect(answered[':status']).toBe(415);
    const line = { route: unary, status: 415, code: 'unsupported_media_type', request_id: 'r-1' };
    expect(await lines()).toMatchObject([{ transport: 'grpc', ...line }]);
  });

  it('a message that does not arrive by the caller’s deadline has one log line', async () => {
    const answered = await post(unary, { 'grpc-timeout': '50m', 'x-request-id': 'r-1' }, null);
    expect(answered['grpc-status']).toBe('4');
    const line = { transport: 'grpc', route: unary, code: 'outcome_unknown', request_id: 'r-1' };
    expect(await lines()).toMatchObject([line]);
  });

  it('a caller that goes away before it takes its answer is logged as no error', async () => {
    const session = connect(`http://${node.grpcAddress}`, { settings: { initialWindowSize: 0 } });
    const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request({ ':method': 'POST', ':path': unary, ...grpc, ...bearer });
    stream.on('error', () => {}).end(small);
    await new Promise((resolve) => stream.once('response', resolve));
    stream.close(constants.NGHTTP2_CANCEL);
    await new Promise((resolve) => stream.once('close', resolve));
    session.destroy();
    expect(await lines()).toMatchObject([{ transport: 'grpc', code: 'ok' }]);
  });

  it('a health check has one log line', async () => {
    expect((await post(health, {}, small))['grpc-status']).toBe('0');
    expect(await lines()).toMatchObject([{ transport: 'grpc', route: health, status: 200, code: 'ok' }]);
  });

  it('hundreds of refused calls at once are all answered, and other calls go on', async () => {
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, at) => post(at % 2 === 0 ? '/nothing' : unary, {}, Buffer.alloc(0))),
    );
    expect(new Set(answers.map((answered) => answered['grpc-status']))).toEqual(new Set(['12']));
    expect(node.lines).toHaveLength(300);
    expect((await post(unary, {}, small))['grpc-status']).toBe('0');
  });

  it('a message of little more than 1 MiB is refused by the service, with ErrorInfo', async () => {
    const payload = 'x'.repeat(mebibyte);
    const request = toBinary(AppendEventRequestSchema, create(AppendEventRequestSchema, { payload }));
    const answered = await post(unary, {}, grpcMessage(request));
    expect(answered['grpc-status']).toBe('8');
    expect(answered).toHaveProperty('grpc-status-details-bin');
    const client = grpcClient(node.grpcAddress);
    const { info } = await callGrpc(client, MasterService.method.appendEvent, { payload }, bearer);
    client.close();
    expect([info?.reason, taken]).toEqual(['payload_too_large', 0]);
  });
});

describe('a bidirectional stream', () => {
  it('ends at a message far beyond 1 MiB, after the outcomes of the earlier ones', async () => {
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
    expect([error.code, infoOf(error)?.reason, outcomes, taken]).toEqual([8, 'payload_too_large', [1n], 1]);
    await expect.poll(() => node.pipeline.running.size).toBe(0);
  });

  it('ends at a message that unpacks to far beyond 1 MiB, and other calls go on', async () => {
    const request = toBinary(AppendEventsRequestSchema, create(AppendEventsRequestSchema, { clientIndex: 1n }));
    const bomb = packedFrame(gzipSync(Buffer.alloc(64 * mebibyte)));
    const path = '/svc.v1.MasterService/AppendEvents';
    const answered = await post(path, gzip, Buffer.concat([grpcMessage(request), bomb, grpcMessage(request)]));
    expect(answered['grpc-status']).toBe('8');
    expect(said(answered)).toMatchObject({ reason: 'payload_too_large' });
    expect((await post(unary, {}, small))['grpc-status']).toBe('0');
  });
});
