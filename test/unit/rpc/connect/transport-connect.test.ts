import { gzipSync } from 'node:zlib';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { ErrorInfoSchema } from '../../../../src/gen/google/rpc/error_details_pb.ts';
import { HealthService } from '../../../../src/gen/svc/v1/health_pb.ts';
import { MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { SandboxService } from '../../../../src/gen/svc/v1/sandbox_pb.ts';
import { bearer, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';

let seen: { payload: string } | null = null;
const node = await listeningNodeForTests({
  grpc: false,
  corsOrigins: ['https://app.example.com'],
  handlers: {
    'HealthService.GetHealth': async () => ({ status: 'ok', db: [] }),
    'MasterService.AppendEvent': async (request: { payload: string }) => {
      seen = request;
      if (seen.payload === '{"refuse":true}') throw new LedgerError('ledger_closed', 'The ledger is closed.', { a: 1 });
      if (seen.payload === '{"refuse":"at length"}')
        throw new LedgerError('invalid_signature', 'é'.repeat(9_000), { canonical: 'x'.repeat(300_000) });
      return { seq: 5n };
    },
    'SandboxService.RunSandbox': async function* () {
      yield { line: 'one' };
      yield { line: 'two' };
      throw new LedgerError('overloaded', 'Enough.');
    },
  },
});

const connectAs = (useBinaryFormat: boolean) => () =>
  createConnectTransport({ baseUrl: node.base, httpVersion: '1.1', useBinaryFormat });
const grpcWebAs = (useBinaryFormat: boolean) => () =>
  createGrpcWebTransport({ baseUrl: node.base, httpVersion: '1.1', useBinaryFormat });
const transports = [
  ['Connect with JSON', connectAs(false)],
  ['Connect with protobuf', connectAs(true)],
  ['gRPC-Web', grpcWebAs(true)],
  ['gRPC-Web with JSON', grpcWebAs(false)],
] as const;

describe.each(transports)('%s', (_name, transport) => {
  it('answers unary calls, and hands over payloads in canonical form', async () => {
    expect((await createClient(HealthService, transport()).getHealth({})).status).toBe('ok');
    const masters = createClient(MasterService, transport());
    const request = { uuid: masterId, eventType: 'A', payload: '{"b":1.0, "a":2}' };
    expect((await masters.appendEvent(request, { headers: bearer })).seq).toBe(5n);
    expect(seen?.payload).toBe('{"a":2,"b":1}');
  });

  it('refuses with 4 KiB at most, and names what it cut', async () => {
    const payload = '{"refuse":"at length"}';
    const call = createClient(MasterService, transport()).appendEvent(
      { uuid: masterId, eventType: 'A', payload },
      { headers: bearer },
    );
    const error = await call.then(
      () => null,
      (thrown: unknown) => ConnectError.from(thrown),
    );
    const [info] = error?.findDetails(ErrorInfoSchema) ?? [];
    expect(info?.metadata.cut).toBe('message,canonical');
    expect(JSON.stringify(info).length).toBeLessThan(4 * 1024);
    expect(Buffer.byteLength(error?.rawMessage ?? '')).toBeLessThanOrEqual(512);
  });

  it('refuses calls with code, ErrorInfo and request id', async () => {
    const masters = createClient(MasterService, transport());
    const refused = (payload: string, headers: Record<string, string>) =>
      masters.appendEvent({ uuid: masterId, eventType: 'A', payload }, { headers }).then(
        () => null,
        (error: unknown) => ConnectError.from(error),
      );
    const error = await refused('{"refuse":true}', { ...bearer, 'x-request-id': 'r-9' });
    expect([error?.code, error?.rawMessage]).toEqual([Code.FailedPrecondition, 'The ledger is closed.']);
    expect(error?.metadata.get('x-request-id')).toBe('r-9');
    expect(error?.findDetails(ErrorInfoSchema)[0]).toMatchObject({
      reason: 'ledger_closed',
      domain: 'svc',
      metadata: { request_id: 'r-9', details: '{"a":1}' },
    });
    expect((await refused('{', {}))?.code).toBe(Code.Unauthenticated);
    expect((await refused('{', bearer))?.findDetails(ErrorInfoSchema)[0]?.reason).toBe('invalid_json');
    const large = await refused(`{"a":"${'x'.repeat(1024 * 1024)}"}`, bearer);
    expect(large?.findDetails(ErrorInfoSchema)[0]?.reason).toBe('payload_too_large');
  });

  it('streams answers, then the error', async () => {
    const lines: string[] = [];
    const run = async () => {
      for await (const { line } of createClient(SandboxService, transport()).runSandbox({})) lines.push(line);
    };
    await expect(run()).rejects.toMatchObject({ code: Code.Unavailable });
    expect(lines).toEqual(['one', 'two']);
  });
});

describe('raw requests to Connect', () => {
  const path = '/svc.v1.MasterService/AppendEvent';
  const appendA = '{"uuid":"a","eventType":"A","payload":"{}"}';
  const ask = async (body: string | Buffer, headers: Record<string, string>, method = 'POST', at = path) => {
    const response = await fetch(node.base + at, {
      method,
      headers: { ...bearer, 'content-type': 'application/json', ...headers },
      ...(method === 'GET' ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, response };
  };

  it.each([
    ['a key that is given twice', '{"uuid":"a","uuid":"b"}', 'duplicate_key', expect.any(Object)],
    ['broken JSON', '{"uuid":', 'invalid_json', expect.any(Object)],
    ['a number for text', '{"uuid":1}', 'invalid_argument', { field: 'uuid', expected: 'a string' }],
    [
      'an unknown field',
      '{"uuid":"a","uuidd":"a"}',
      'invalid_argument',
      { field: 'uuidd', expected: 'one of uuid, eventType, payload' },
    ],
    [
      'a value of another kind',
      '{"uuid":"a","event_type":1}',
      'invalid_argument',
      { field: 'event_type', expected: 'a string' },
    ],
    ['no object', '[]', 'invalid_argument', { field: 'body', expected: 'a JSON object' }],
  ])('%s is refused, and its field is named in details', async (_name, body, reason, expected) => {
    const { status, text } = await ask(body, {});
    type Debug = { reason: string; metadata: { details?: string } };
    const { details } = JSON.parse(text) as { details: { debug: Debug }[] };
    const { debug } = details[0] ?? {};
    expect([status, debug?.reason]).toEqual([400, reason]);
    expect(JSON.parse(debug?.metadata.details ?? '{}')).toEqual(expected);
  });

  it('a gzip bomb is payload_too_large', async () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024));
    const { text } = await ask(bomb, { 'content-encoding': 'gzip' });
    expect(text).toContain('payload_too_large');
  });

  it('a compressed message is read, and a malformed or differently compressed one is refused', async () => {
    expect((await ask(gzipSync(appendA), { 'content-encoding': 'gzip' })).status).toBe(200);
    expect((await ask(appendA, { 'content-encoding': 'gzip' })).text).toContain('invalid_argument');
    expect((await ask(appendA, { 'content-encoding': 'zstd' })).text).toContain('unsupported_media_type');
    expect((await ask(appendA, { 'content-encoding': 'toString' })).text).toContain('unsupported_media_type');
  });

  it('an unknown method, a GET and another media type get the envelope', async () => {
    const code = (text: string) => (JSON.parse(text) as { error: { code: string } }).error.code;
    expect(code((await ask('{}', {}, 'POST', '/svc.v1.MasterService/Nope')).text)).toBe('route_not_found');
    expect(code((await ask('{}', {}, 'POST', '/svc.v1.MasterService/AppendEvents')).text)).toBe('route_not_found');
    const get = await ask('', {}, 'GET');
    expect([get.status, code(get.text)]).toEqual([405, 'method_not_allowed']);
    expect(get.response.headers.get('allow')).toBe('POST, OPTIONS');
    expect(code((await ask('{}', { 'content-type': 'text/plain' })).text)).toBe('unsupported_media_type');
  });

  it.each([
    ['Connect', { 'connect-timeout-ms': 'abc' }, 'Connect-Timeout-Ms'],
    ['Connect', { 'connect-timeout-ms': '12345678901' }, 'Connect-Timeout-Ms'],
    ['gRPC-Web', { 'content-type': 'application/grpc-web+proto', 'grpc-timeout': 'abc' }, 'grpc-timeout'],
    ['gRPC-Web', { 'content-type': 'application/grpc-web+proto', 'grpc-timeout': '5' }, 'grpc-timeout'],
  ])('a malformed timeout of %s gets the envelope: %o', async (_protocol, headers, header) => {
    seen = null;
    const { status, text, response } = await ask(appendA, { ...headers, 'x-request-id': 'r-7' });
    expect([status, response.headers.get('x-request-id')]).toEqual([400, 'r-7']);
    expect(JSON.parse(text)).toMatchObject({
      error: { code: 'invalid_argument', request_id: 'r-7', details: { header } },
    });
    expect(seen).toBeNull();
  });

  it('a well-formed timeout is accepted', async () => {
    expect((await ask(appendA, { 'connect-timeout-ms': '5000' })).status).toBe(200);
    // The header of the other protocol says nothing here.
    expect((await ask(appendA, { 'grpc-timeout': 'abc' })).status).toBe(200);
  });

  it.each([
    ['Connect', appendA, { 'connect-timeout-ms': '9999999999' }],
    ['gRPC-Web', '', { 'content-type': 'application/grpc-web+proto', 'grpc-timeout': '99999999H' }],
  ])('a timeout of %s that is longer than any timer is no short one', async (_protocol, body, headers) => {
    const warned = vi.fn();
    process.on('warning', warned);
    onTestFinished(() => void process.off('warning', warned));
    expect((await ask(body, headers)).status).toBe(200);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).not.toHaveBeenCalled();
  });

  it('pages of an allowed origin may call', async () => {
    const origin = 'https://app.example.com';
    const { response } = await ask(appendA, { origin });
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
  });
});
