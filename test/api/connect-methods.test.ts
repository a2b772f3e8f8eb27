import { expect, test } from 'vitest';
import { rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import { apiServices } from '../../src/rpc/endpoints/routes.ts';
import { nodeForTests } from '../support/node-for-tests.ts';

const node = await nodeForTests();

const methods = apiServices.flatMap((service) => service.methods);
const served = methods.filter(({ methodKind }) => methodKind === 'unary' || methodKind === 'server_streaming');

/** One message in a frame: flags, length, nothing more. */
function frame(message: string): Uint8Array<ArrayBuffer> {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return new Uint8Array(Buffer.concat([head, Buffer.from(message)]));
}

/** The beginning of an answer, with its trailers where it is short: what streams for long is not waited for. */
async function ask(path: string, contentType: string, body: Uint8Array<ArrayBuffer>) {
  const leave = new AbortController();
  const response = await fetch(node.base + path, {
    method: 'POST',
    headers: { 'content-type': contentType },
    body,
    signal: leave.signal,
  });
  const first = await response.body?.getReader().read();
  leave.abort();
  return {
    status: response.status,
    contentType: response.headers.get('content-type'),
    requestId: response.headers.get('x-request-id'),
    text: Buffer.from(first?.value ?? []).toString('latin1'),
  };
}

test('every method except AppendEvents is served over HTTP/1.1', async () => {
  expect(methods.filter((method) => !served.includes(method)).map(rpcPathOf)).toEqual([
    '/svc.v1.MasterService/AppendEvents',
  ]);
  const { status, text } = await ask('/svc.v1.MasterService/AppendEvents', 'application/connect+json', frame('{}'));
  expect([status, text]).toEqual([404, expect.stringContaining('route_not_found')]);
});

// Unary methods are driven over Connect with the rules of their fields (input-fields.test.ts).
const streaming = served.filter(({ methodKind }) => methodKind === 'server_streaming').map(rpcPathOf);
test.each(streaming)('%s is served over Connect', async (path) => {
  const type = 'application/connect+json';
  const answer = await ask(path, type, frame('{}'));
  // Answered as the protocol words it: the envelope of an unknown path is no Connect error.
  expect(answer).toMatchObject({ status: 200, contentType: type, requestId: expect.stringMatching(/./) });
  expect(answer.text).not.toContain('route_not_found');
});

test.each(served.map(rpcPathOf))('%s is served over gRPC-Web', async (path) => {
  const answer = await ask(path, 'application/grpc-web+proto', frame(''));
  expect(answer).toMatchObject({ status: 200, contentType: 'application/grpc-web+proto' });
  // 12 is UNIMPLEMENTED.
  expect(answer.text).not.toMatch(/grpc-status: ?12\b/);
});
