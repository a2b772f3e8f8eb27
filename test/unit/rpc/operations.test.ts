import { once } from 'node:events';
import { get as httpsGet } from 'node:https';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { credentials, type GrpcObject, loadPackageDefinition, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, describe, expect, it } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { DeveloperService } from '../../../src/gen/svc/v1/developer_pb.ts';
import { HealthService } from '../../../src/gen/svc/v1/health_pb.ts';
import { clientAddressBehind } from '../../../src/rpc/call/client-address.ts';
import { rpcPathOf } from '../../../src/rpc/endpoints/endpoint.ts';
import { openInternalListener } from '../../../src/rpc/internal-listener.ts';
import { createMetrics } from '../../../src/runtime/telemetry/metrics.ts';
import { createSecretBox } from '../../../src/service/records/secret-box.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import {
  bearer,
  type ListeningNode,
  type ListeningNodeOptions,
  masterId,
  startListeningNode,
} from '../../support/listening-node.ts';
import { openTextSocket } from '../../support/raw-http.ts';
import { newTlsKeys } from '../../support/tls-keys.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});
async function start(options: Partial<ListeningNodeOptions>): Promise<ListeningNode> {
  const handlers = { 'HealthService.GetHealth': async () => ({ status: 'ok' }), ...options.handlers };
  const node = await startListeningNode({ ...options, handlers });
  cleanups.push(() => node[Symbol.asyncDispose]());
  return node;
}

describe('rate limits', () => {
  const register = (node: ListeningNode, headers: Record<string, string> = {}) =>
    fetch(`${node.base}/v1/actors`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    });

  it('creations without a credential count by address, and a refusal says when to retry', async () => {
    const node = await start({
      grpc: false,
      rates: { create: { perSecond: 0.1, burst: 2 } },
      handlers: { 'ActorService.CreateActor': async () => ({}) },
    });
    expect([(await register(node)).status, (await register(node)).status]).toEqual([200, 200]);
    const limited = await register(node);
    const headers = ['retry-after', 'ratelimit', 'ratelimit-policy'].map((name) => limited.headers.get(name));
    expect([limited.status, ...headers]).toEqual([429, '10', '"create";r=0;t=10', '"create";q=2;w=20']);
    const error = { code: 'rate_limited', details: { retry_after_s: 10 } };
    expect(await limited.json()).toMatchObject({ error });
    expect((await fetch(`${node.base}/health`)).status).toBe(200);
  });

  it('a call beyond the rate is refused before its body has come, over REST and Connect', async () => {
    const node = await start({
      grpc: false,
      rates: { create: { perSecond: 0.1, burst: 1 } },
      handlers: { 'ActorService.CreateActor': async () => ({}) },
    });
    expect((await register(node)).status).toBe(200);
    for (const path of ['/v1/actors', '/svc.v1.ActorService/CreateActor']) {
      const socket = openTextSocket(node.http.port);
      cleanups.push(() => socket.destroy());
      const head = [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', 'Content-Length: 9'];
      socket.write(`${head.join('\r\n')}\r\n\r\n{`);
      await expect.poll(() => socket.text).toMatch(/^HTTP\/1.1 429 /);
    }
  });

  it('the forwarded address counts if it comes from a trusted proxy, and is ignored otherwise', async () => {
    const options = {
      grpc: false,
      rates: { create: { perSecond: 0.1, burst: 1 } },
      handlers: { 'ActorService.CreateActor': async () => ({}) },
    };
    const statuses = async (node: ListeningNode) => {
      const answers = [];
      for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1'])
        answers.push((await register(node, { 'x-forwarded-for': `10.9.9.9, ${address}` })).status);
      return answers;
    };
    expect(await statuses(await start({ ...options, trustedProxies: ['127.0.0.1'] }))).toEqual([200, 200, 429]);
    expect(await statuses(await start(options))).toEqual([200, 429, 429]);
  });

  it('appends and other calls of a key have separate limits, the same over gRPC', async () => {
    const one = { perSecond: 0.1, burst: 1 };
    const node = await start({
      rates: { call: one, append: one },
      handlers: { 'MasterService.AppendEvent': async () => ({}), 'DeveloperService.GetDeveloper': async () => ({}) },
    });
    const append = () =>
      fetch(`${node.base}/v1/traceledger/master/${masterId}/events`, {
        method: 'POST',
        headers: { ...bearer, 'content-type': 'application/json' },
        body: '{"event_type":"A","payload":{}}',
      });
    const me = () => fetch(`${node.base}/v1/developer/me`, { headers: bearer });
    const answers = [await append(), await me(), await append(), await me()];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    const client = grpcClient(node.grpcAddress);
    cleanups.push(() => client.close());
    const { error, info, metadata } = await callGrpc(client, DeveloperService.method.getDeveloper, {}, bearer);
    expect([error?.code, info?.reason, metadata.get('retry-after')]).toEqual([8, 'rate_limited', ['10']]);
  });

  it('an error that knows when to send the call again says so on every protocol', async () => {
    const node = await start({
      handlers: {
        'DeveloperService.GetDeveloper': async () => {
          throw new LedgerError('unavailable', 'Not now.', { reason: 'tree_building', retry_after_s: 30 });
        },
      },
    });
    const viaRest = await fetch(`${node.base}/v1/developer/me`, { headers: bearer });
    expect([viaRest.status, viaRest.headers.get('retry-after')]).toEqual([503, '30']);
    const viaConnect = await fetch(`${node.base}${rpcPathOf(DeveloperService.method.getDeveloper)}`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: '{}',
    });
    expect([viaConnect.status, viaConnect.headers.get('retry-after')]).toEqual([503, '30']);
    const client = grpcClient(node.grpcAddress);
    cleanups.push(() => client.close());
    const { error, metadata } = await callGrpc(client, DeveloperService.method.getDeveloper, {}, bearer);
    expect([error?.code, metadata.get('retry-after')]).toEqual([14, ['30']]);
  });

  it('the address from X-Forwarded-For is the first hop that is not trusted, and always an address', () => {
    const behind = clientAddressBehind(['10.0.0.0/8']);
    const addresses = [
      behind('10.0.0.1', '203.0.113.5, 10.0.0.2'),
      behind('10.0.0.1', '198.51.100.9, 203.0.113.5'),
      behind('192.0.2.1', '203.0.113.5'),
      behind('10.0.0.1', 'nonsense'),
      behind('10.0.0.1', '10.0.0.3'),
    ];
    expect(addresses).toEqual(['203.0.113.5', '203.0.113.5', '192.0.2.1', '10.0.0.1', '10.0.0.3']);
  });
});

describe('the internal port', () => {
  it('serves metrics, liveness and readiness, and nothing else', async () => {
    const metrics = createMetrics();
    metrics.requests.inc({ transport: 'rest', method: 'm', code: 'ok' });
    let ready = false;
    const transport = await openInternalListener(
      { metrics, readiness: async () => (ready ? { ready } : { ready, reason: 'the store is away' }) },
      '127.0.0.1',
      0,
    );
    cleanups.push(() => transport[Symbol.asyncDispose]());
    const get = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${transport.port}${path}`, { method });
    expect(await (await get('/metrics')).text()).toContain(
      'svc_requests_total{transport="rest",method="m",code="ok"} 1',
    );
    expect((await get('/health/live')).status).toBe(200);
    expect(await (await get('/health/ready')).json()).toEqual({ status: 'not ready', reason: 'the store is away' });
    ready = true;
    expect([
      (await get('/health/ready')).status,
      (await get('/v1/health')).status,
      (await get('/metrics', 'POST')).status,
    ]).toEqual([200, 404, 405]);
  });

  it('an error for a port in use names the port', async () => {
    const parts = { metrics: createMetrics(), readiness: async () => ({ ready: true }) };
    const transport = await openInternalListener(parts, '127.0.0.1', 0);
    cleanups.push(() => transport[Symbol.asyncDispose]());
    await expect(openInternalListener(parts, '127.0.0.1', transport.port)).rejects.toThrow(
      `Cannot listen on 127.0.0.1 port ${transport.port}`,
    );
  });
});

describe('gRPC beside the API', () => {
  const load = (module: string, file: string): GrpcObject => {
    const root = createRequire(import.meta.url).resolve(`${module}/package.json`);
    return loadPackageDefinition(loadSync(join(root, '..', file), { keepCase: true }));
  };

  it('reflection lists the services and returns the file of a symbol', async () => {
    const node = await start({});
    const loaded = load('@grpc/reflection', 'build/proto/grpc/reflection/v1/reflection.proto');
    const service = at(loaded, 'grpc', 'reflection', 'v1', 'ServerReflection') as unknown as ServiceClientConstructor;
    const client = new service(node.grpcAddress, credentials.createInsecure());
    cleanups.push(() => client.close());
    const stream = (client as unknown as { ServerReflectionInfo(): NodeJS.ReadWriteStream }).ServerReflectionInfo();
    stream.on('error', () => {});
    const ask = (request: object) =>
      new Promise<object>((resolve) => {
        stream.once('data', resolve);
        stream.write(request as never);
      });
    const { list_services_response: listed } = (await ask({ list_services: '' })) as {
      list_services_response: { service: { name: string }[] };
    };
    expect(listed.service.map(({ name }) => name)).toContain('svc.v1.LedgerService');
    const answer = await ask({ file_containing_symbol: 'svc.v1.MasterService.AppendEvents' });
    expect(answer).toHaveProperty('file_descriptor_response.file_descriptor_proto.0');
    stream.end();
  });

  it('grpc.health.v1 reports whether the node serves', async () => {
    const node = await start({});
    const loaded = load('grpc-health-check', 'proto/health/v1/health.proto');
    const service = at(loaded, 'grpc', 'health', 'v1', 'Health') as unknown as ServiceClientConstructor;
    const client = new service(node.grpcAddress, credentials.createInsecure());
    cleanups.push(() => client.close());
    const [serving, notServing] = [1, 2];
    type Answer = { readonly status: number; readonly statuses: Record<string, { readonly status: number }> };
    type Unary = (request: object, done: (error: Error | null, answer: Answer) => void) => void;
    type Watch = (request: object) => AsyncIterable<Answer> & { cancel(): void };
    const calls = client as unknown as { readonly Check: Unary; readonly List: Unary; readonly Watch: Watch };
    const answerOf = (method: 'Check' | 'List', request: object) =>
      new Promise<Answer>((resolve, reject) => {
        calls[method](request, (error, answer) => (error === null ? resolve(answer) : reject(error)));
      });
    const check = async (name: string) => (await answerOf('Check', { service: name })).status;
    const watch = calls.Watch({ service: 'svc.v1.LedgerService' });
    const watched: number[] = [];
    const ended = (async () => {
      for await (const { status } of watch) watched.push(status);
    })().catch((error: { readonly code: number }) => error.code);
    expect(await check('svc.v1.LedgerService')).toBe(serving);
    await expect.poll(() => watched).toEqual([serving]);
    node.grpc.setServing(false);
    expect([await check('svc.v1.LedgerService'), await check('')]).toEqual([notServing, notServing]);
    const { statuses } = await answerOf('List', {});
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['', 'svc.v1.LedgerService']));
    expect(new Set(Object.values(statuses).map(({ status }) => status))).toEqual(new Set([notServing]));
    await expect.poll(() => watched).toEqual([serving, notServing]);
    watch.cancel();
    expect(await ended).toBe(1);
  });
});

function at(object: GrpcObject, ...path: string[]): unknown {
  return path.reduce<unknown>((inner, name) => (inner as GrpcObject)[name], object);
}

describe('stopping', () => {
  it('a node that stops lets running calls finish and takes no new connection', async () => {
    const held = Promise.withResolvers<void>();
    const node = await start({
      handlers: { 'HealthService.GetTerms': async () => held.promise.then(() => ({ version: '1.0', text: 't' })) },
    });
    const client = grpcClient(node.grpcAddress);
    cleanups.push(() => client.close());
    const rest = fetch(`${node.base}/v1/legal/terms`);
    const grpc = callGrpc(client, HealthService.method.getTerms, {});
    await expect.poll(() => node.pipeline.running.size).toBe(2);
    const closed = Promise.all([node.http.close(5_000), node.grpc.close(5_000)]);
    // Those that waited when the close began are accepted first.
    const further = () =>
      fetch(`${node.base}/health`).then(
        () => 'taken',
        () => 'refused',
      );
    await expect.poll(further).toBe('refused');
    held.resolve();
    expect([(await rest).status, (await grpc).message]).toMatchObject([200, { version: '1.0' }]);
    await closed;
  });

  it('a call that does not end is cut off after the grace period', async () => {
    const node = await start({ handlers: { 'HealthService.GetTerms': () => new Promise<object>(() => {}) } });
    const rest = fetch(`${node.base}/v1/legal/terms`).then(
      () => 'answered',
      () => 'cut off',
    );
    await expect.poll(() => node.pipeline.running.size).toBe(1);
    await Promise.all([node.http.close(100), node.grpc.close(100)]);
    expect(await rest).toBe('cut off');
  });
});

it('both public ports speak TLS and nothing else', async () => {
  const tls = newTlsKeys();
  const node = await start({ tls });
  const request = httpsGet({
    host: '127.0.0.1',
    servername: 'localhost',
    port: node.http.port,
    path: '/health',
    ca: tls.cert,
  });
  const [answer] = await once(request, 'response');
  expect(answer.resume().statusCode).toBe(200);
  await expect(fetch(`http://127.0.0.1:${node.http.port}/health`)).rejects.toThrow();
  const client = grpcClient(node.grpcAddress, tls.cert);
  cleanups.push(() => client.close());
  expect((await callGrpc(client, HealthService.method.getHealth, {})).message).toMatchObject({ status: 'ok' });
});

describe('the secret box', () => {
  const key = Buffer.alloc(32, 1);
  const random = (length: number) => Buffer.alloc(length, ++turn);
  let turn = 0;
  const box = createSecretBox(key, random);

  it('opens what it sealed in the same context only', () => {
    const sealed = box.seal(Buffer.from('whsec_x'), 'webhook/1');
    expect(box.open(sealed, 'webhook/1').toString()).toBe('whsec_x');
    expect(() => box.open(sealed, 'webhook/2')).toThrow();
    expect(sealed).not.toContain(Buffer.from('whsec_x').toString('base64').slice(0, 6));
  });

  it('seals the same secret differently each time, and finds any changed byte', () => {
    const [one, two] = [box.seal(Buffer.from('s'), 'c'), box.seal(Buffer.from('s'), 'c')];
    expect(one).not.toBe(two);
    const bytes = Buffer.from(one, 'base64');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => box.open(changed.toString('base64'), 'c')).toThrow();
    }
    expect(() => box.open('', 'c')).toThrow();
  });

  it('another key opens nothing and has another fingerprint', () => {
    const other = createSecretBox(Buffer.alloc(32, 2), random);
    expect(() => other.open(box.seal(Buffer.from('s'), 'c'), 'c')).toThrow();
    expect(other.fingerprint).not.toBe(box.fingerprint);
    expect(() => createSecretBox(Buffer.alloc(31), random)).toThrow(RangeError);
  });
});
