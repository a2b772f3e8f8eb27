import { once } from 'node:events';
import { create } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { expect, it, onTestFinished } from 'vitest';
import { requestValuesMax } from '../../../src/domain/json/json.ts';
import {
  type AppendError,
  type AppendEventRequest,
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  type AppendEventsResponse,
  MasterService,
} from '../../../src/gen/svc/v1/masters_pb.ts';
import { rpcPathOf } from '../../../src/rpc/endpoints/endpoint.ts';
import type { Call } from '../../../src/service/calls/call.ts';
import { payloadBytesMax } from '../../../src/service/masters/payload.ts';
import { callGrpc, grpcClient, openGrpcStream } from '../../support/grpc-client.ts';
import {
  bearer,
  type ListeningNodeOptions,
  ledgerId,
  masterId,
  startListeningNode,
} from '../../support/listening-node.ts';

/** Texts with many short values take long to read, on the thread that all calls share. */

async function start(options: ListeningNodeOptions) {
  const node = await startListeningNode(options);
  onTestFinished(() => node[Symbol.asyncDispose]());
  return node;
}

function clientOf(address: string) {
  const client = grpcClient(address);
  onTestFinished(() => client.close());
  return client;
}

it('an actor that owes calls for events of a stream sends small appends, but no compressed ones', async () => {
  const node = await start({
    rates: { append: { perSecond: 0.1, burst: 150 } },
    handlers: {
      'MasterService.AppendEvent': async () => ({}),
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>, call: Call) {
        for await (const { clientIndex } of requests) {
          call.admitEvent();
          yield { clientIndex };
        }
      },
    },
  });
  const plain = clientOf(node.grpcAddress);
  const gzip = new Client(node.grpcAddress, credentials.createInsecure(), { 'grpc.default_compression_algorithm': 2 });
  onTestFinished(() => gzip.close());
  const event = (values: number) => {
    const payload = JSON.stringify({ list: Array.from({ length: values }, () => 0) });
    return { uuid: masterId, eventType: 'A', payload };
  };
  const append = async (client: Client) =>
    (await callGrpc(client, MasterService.method.appendEvent, event(1), bearer)).info?.reason ?? 'appended';
  expect([await append(plain), await append(gzip)]).toEqual(['appended', 'appended']);
  const stream = openGrpcStream(plain, MasterService.method.appendEvents, bearer);
  stream.write(event(10_000));
  await once(stream, 'data');
  expect([await append(plain), await append(gzip)]).toEqual(['appended', 'rate_limited']);
  stream.end();
  await once(stream.resume(), 'end');
});

it('a request with many JSON values counts as many calls, and is not read once its caller owes calls', async () => {
  let appended = 0;
  const node = await start({
    rates: { append: { perSecond: 0.1, burst: 150 } },
    handlers: {
      'MasterService.AppendEvent': async () => {
        appended += 1;
        return {};
      },
    },
  });
  const payload = (values: number) => JSON.stringify({ list: Array.from({ length: values }, () => 0) });
  const rest = (values: number) =>
    fetch(`${node.base}/v1/traceledger/master/${masterId}/events`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: `{"event_type":"A","payload":${payload(values)}}`,
    });
  const connect = (values: number) =>
    fetch(`${node.base}${rpcPathOf(MasterService.method.appendEvent)}`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: JSON.stringify({ uuid: masterId, eventType: 'A', payload: payload(values) }),
    });
  const client = clientOf(node.grpcAddress);
  const grpc = (values: number) => {
    const event = { uuid: masterId, eventType: 'A', payload: payload(values) };
    return callGrpc(client, MasterService.method.appendEvent, event, bearer);
  };
  expect([(await rest(2_000)).status, (await connect(2_000)).status, (await grpc(4_000)).info]).toEqual([
    200,
    200,
    null,
  ]);
  const refused = await rest(100);
  expect([refused.status, refused.headers.get('ratelimit')]).toEqual([429, expect.stringMatching(/^"append";r=0;t=/)]);
  expect((await connect(1)).status).toBe(429);
  expect((await grpc(1)).info?.reason).toBe('rate_limited');
  expect(appended).toBe(3);
});

it('an event of a stream counts by its message, and is refused once the rate of its actor is used up', async () => {
  const node = await start({
    rates: { append: { perSecond: 0.1, burst: 150 } },
    handlers: {
      'MasterService.AppendEvent': async () => ({}),
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>, call: Call) {
        for await (const { clientIndex } of requests) {
          const code = call.admitEvent()?.error.code ?? '';
          yield { clientIndex, outcome: { case: 'error', value: { code } } };
        }
      },
    },
  });
  const client = clientOf(node.grpcAddress);
  const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
  const codes: unknown[] = [];
  stream.on('data', ({ outcome }: AppendEventsResponse) => void codes.push((outcome.value as AppendError).code));
  const payload = `[${'0,'.repeat(5_000)}0]`;
  const event = { uuid: masterId, eventType: 'A', payload };
  // A long text in any field counts, not that of the payload alone.
  const long = { uuid: 'x'.repeat(256 * 1024), eventType: 'A', payload: '{}' };
  for (const sent of [{ ...event, payload: '{}' }, event, long, long])
    stream.write(create(AppendEventsRequestSchema, sent));
  stream.end();
  await once(stream, 'end');
  expect(codes).toEqual(['', '', '', 'rate_limited']);
  const append = (payload: string) =>
    callGrpc(client, MasterService.method.appendEvent, { ...event, payload }, bearer).then(({ info }) => info?.reason);
  expect([await append(payload), await append('{}')]).toEqual(['rate_limited', undefined]);
});

it('a refused event of a stream counts as a call, however small it is', async () => {
  const node = await start({
    rates: { append: { perSecond: 0.1, burst: 3 } },
    handlers: {
      'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>, call: Call) {
        for await (const { clientIndex } of requests) {
          const code = call.admitEvent()?.error.code ?? '';
          if (code === '') call.eventRefused();
          yield { clientIndex, outcome: { case: 'error', value: { code } } };
        }
      },
    },
  });
  const stream = openGrpcStream(clientOf(node.grpcAddress), MasterService.method.appendEvents, bearer);
  const codes: unknown[] = [];
  stream.on('data', ({ outcome }: AppendEventsResponse) => void codes.push((outcome.value as AppendError).code));
  for (let sent = 0; sent < 6; sent += 1) stream.write(create(AppendEventsRequestSchema, {}));
  stream.end();
  await once(stream, 'end');
  expect(codes).toEqual(['', '', '', '', 'rate_limited', 'rate_limited']);
});

it('a payload of the most values is read over every transport; a request with more is refused, and not read twice', async () => {
  const lengths: number[] = [];
  const node = await start({
    handlers: {
      'MasterService.AppendEvent': async ({ payload }: AppendEventRequest) => {
        lengths.push(payload.length);
        return {};
      },
    },
  });
  const listOf = (values: number) => `{"n":[${'0,'.repeat(values - 3)}0]}`;
  const post = (path: string, body: string) =>
    fetch(`${node.base}${path}`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body,
    });
  const rest = (payload: string) =>
    post(`/v1/traceledger/master/${masterId}/events`, `{"event_type":"A","payload":${payload}}`);
  const method = MasterService.method.appendEvent;
  const connect = (payload: string) =>
    post(rpcPathOf(method), JSON.stringify({ uuid: masterId, eventType: 'A', payload }));
  const client = clientOf(node.grpcAddress);
  const grpc = (payload: string) => callGrpc(client, method, { uuid: masterId, eventType: 'A', payload }, bearer);

  const most = listOf(payloadBytesMax / 2 - 2);
  expect(most).toHaveLength(payloadBytesMax - 1);
  expect([(await rest(most)).status, (await connect(most)).status, (await grpc(most)).info]).toEqual([200, 200, null]);
  expect(lengths).toEqual([most.length, most.length, most.length]);

  const tooMany = listOf(requestValuesMax + 1);
  const error = { code: 'payload_too_large', details: { limit: requestValuesMax } };
  const answer = await rest(tooMany);
  expect([answer.status, await answer.json()]).toMatchObject([413, { error }]);
  expect(await (await connect(tooMany)).text()).toContain(error.code);
  expect((await grpc(tooMany)).info?.reason).toBe(error.code);

  const created = (values: number) =>
    post('/v1/traceledger/master', `{"ledger_id":"${ledgerId}","x":${listOf(values)}}`);
  expect([(await created(10)).status, (await created(requestValuesMax + 1)).status]).toEqual([400, 413]);
  await expect.poll(() => node.accesses.map(({ responseStatus }) => responseStatus)).toEqual([400]);
  expect(lengths).toHaveLength(3);
});

it('a refused request leaves an access record, though it has many values or escapes', async () => {
  const node = await start({ grpc: false, handlers: {} });
  const post = (path: string, body: string) =>
    fetch(`${node.base}${path}`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body,
    });
  const escapes = `"${'\\n'.repeat(131_000)}"`;
  const values = `[${'0,'.repeat(129_999)}0]`;
  for (const value of ['1', escapes, values]) {
    for (const sent of [
      post('/v1/traceledger/master', `{"ledger_id":"${ledgerId}","x":${value}}`),
      post(rpcPathOf(MasterService.method.createMaster), `{"ledgerId":"${ledgerId}","x":${value}}`),
    ])
      expect((await sent).status).toBe(400);
  }
  await expect.poll(() => node.accesses.map((access) => access.ledgerId)).toEqual(Array(6).fill(ledgerId));
});

it('a request without a credential may have 28,000 parts', async () => {
  const node = await start({ grpc: false, handlers: { 'ActorService.CreateActor': async () => ({}) } });
  const sent = (values: number) =>
    fetch(`${node.base}/v1/actors`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"x":[${Array.from({ length: values }, () => 0)}]}`,
    });
  const answer = await sent(28_100);
  const error = { code: 'payload_too_large', details: { limit: 28_000 } };
  expect([answer.status, await answer.json()]).toMatchObject([413, { error }]);
  expect((await sent(27_300)).status).toBe(400);
});
