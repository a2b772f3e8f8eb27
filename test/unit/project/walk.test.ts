import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { MasterService } from '../../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from '../../support/grpc-client.ts';
import { append, newMaster, newOrder, signedBy } from '../../support/parties.ts';
import { runNode } from '../../support/running-node.ts';

const root = join(import.meta.dirname, '../../..');
const node = await runNode();
const client = grpcClient(node.grpcAddress);
afterAll(async () => {
  client.close();
  await node[Symbol.asyncDispose]();
});

/** The steps of "The walk of one append" in docs/architecture.md, each the text of one list item. */
function stepsOfWalk(): string[] {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const section = page.split('\n## ').find((text) => text.startsWith('The walk of one append')) ?? '';
  return section.split(/\n\d+\. /).slice(1);
}

/** Functions that a step names, as `path: name`. */
const functionsIn = (text: string) => [...text.matchAll(/`((?:src|cluster)\/[\w./-]+: #?\w+)`/g)].map(([, one]) => one);

/** Every function of src that `call` has called at least once, as `path: name`. */
async function calledBy(call: () => Promise<unknown>): Promise<Set<string>> {
  const session = new Session();
  session.connect();
  using _session = { [Symbol.dispose]: () => session.disconnect() };
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await call();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const called = result
    .filter(({ url }) => url.startsWith('file:'))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges }) => ranges.some(({ count }) => count > 0))
        .map(({ functionName }) => `${fileURLToPath(url).slice(root.length + 1)}: ${functionName}`),
    );
  return new Set(called);
}

test('the walk of one append has ten steps and enters no room twice before the answer', () => {
  const steps = stepsOfWalk();
  expect(steps).toHaveLength(10);
  const rooms = steps.map((step) => functionsIn(step)[0]?.split('/')[1]);
  const entered = rooms.filter((room, at) => room !== rooms[at - 1]);
  expect(entered).toEqual(['rpc', 'service', 'actors', 'store', 'rpc']);
});

test('one append over REST calls every function of the walk, and one over gRPC those of gRPC', async () => {
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const steps = stepsOfWalk();
  const overRest = steps.flatMap((step) => functionsIn(step.replace(/\((?:gRPC|Cassandra):[^)]*\)/g, '')));
  const overGrpc = steps.flatMap((step) => functionsIn(/\(gRPC:[^)]*\)/.exec(step)?.[0] ?? ''));
  expect(overRest.length).toBeGreaterThanOrEqual(10);
  expect(overGrpc.length).toBeGreaterThanOrEqual(2);
  const rest = await calledBy(async () => {
    expect((await append(master, order.buyer, 'NOTED', {})).status).toBe(200);
  });
  expect(overRest.filter((one) => !rest.has(one ?? ''))).toEqual([]);
  const grpc = await calledBy(async () => {
    const headers = signedBy(order.buyer, 'NOTED', master.ledgerId, master.injected);
    const request = { uuid: master.uuid, eventType: 'NOTED', payload: '{}' };
    const { error } = await callGrpc(client, MasterService.method.appendEvent, request, headers);
    expect(error).toBeNull();
  });
  expect(overGrpc.filter((one) => !grpc.has(one ?? ''))).toEqual([]);
});
