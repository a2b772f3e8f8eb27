import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Message } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { sharedKeys } from '../../cluster/local/shared-keys.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { watchHost } from '../support/host-watch.ts';
import { clusterMain, runToEnd, startNodeProcess, stopWhileStarting } from '../support/node-process.ts';
import { startNpmScript } from '../support/npm-script.ts';
import { append, eventsOf, newMaster, newOrder } from '../support/parties.ts';
import type { Fields } from '../support/parties-rest.ts';
import { openStream, outcomeOf, type StreamOutcome, streamed } from '../support/parties-stream.ts';
import { openTextSocket, parts } from '../support/raw-http.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const freshDir = () => mkdtempSync(join(root, 'node-'));

test('SIGTERM during a start exits with 0 before the announcement and leaves a sound directory', async () => {
  const DATA_DIR = join(freshDir(), 'data');
  const end = await stopWhileStarting({ DATA_DIR }, () => existsSync(DATA_DIR));
  expect(end).toEqual({ code: 0, stdout: '', stderr: '' });
  await using node = await runNode({ dataDir: DATA_DIR });
  await newOrder(node.base);
});

/** Process 1 of a container never gets a signal that it does not handle. Any other process is ended by the signal. */
const unshare = ['unshare', '--pid', '--fork', '--mount-proc'];
const asProcess1 = spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0 ? unshare : [];
/** A cluster whose stores do not answer. */
const noStores = {
  ...sharedKeys(freshDir()),
  REDIS_URL: 'redis://127.0.0.1:1',
  CASSANDRA_CONTACT_POINTS: '127.0.0.1:1',
  START_WAIT_MS: '60000',
  LOG_LEVEL: 'silent',
};

test.each([
  ['a node', undefined, {}],
  ['a node of a cluster', clusterMain, noStores],
])(
  'SIGTERM to %s that has not loaded the service yet is not lost, and the exit code is 0',
  async (_, main, env) => {
    const NODE_OPTIONS = `--import=${new URL('../support/stop-at-load.ts', import.meta.url)}`;
    const end = await runToEnd({ DATA_DIR: freshDir(), NODE_OPTIONS, ...env }, main, [], asProcess1);
    expect(end).toEqual({ code: 0, stdout: '', stderr: '' });
  },
  40_000,
);

test('SIGTERM finishes the calls in flight, refuses further ones, and exits with 0', async () => {
  const DATA_DIR = freshDir();
  const node = await startNodeProcess({ DATA_DIR });
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const answered: Fields[] = [];
  let refused = 0;
  let stopping = false;
  /** The statuses of the calls that were under way at SIGTERM. */
  const underWay: number[] = [];
  /** Lanes that had an answer, and so have a connection, and those that had none any more in the end. */
  const [connected, ended] = [new Set<number>(), new Set<number>()];
  const lanes = Array.from({ length: 20 }, async (_, lane) => {
    for (let n = 0; n < 500; n += 1) {
      const late = stopping;
      try {
        const answer = await append(master, order.buyer, 'NOTED', { lane, n });
        connected.add(lane);
        if (stopping && !late) underWay.push(answer.status);
        if (answer.status === 200) answered.push(answer.body);
        else {
          expect(answer.code).toBe('unavailable');
          refused += 1;
        }
      } catch (error) {
        // A call that was sent before SIGTERM is answered. Further ones may find no connection, or one that ends.
        const { cause } = error as Error & { cause?: Error & { code?: string } };
        expect([late, cause?.code]).toEqual([
          true,
          expect.stringMatching(/^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$/),
        ]);
        ended.add(lane);
        return;
      }
    }
  });
  await expect.poll(() => connected.size).toBe(lanes.length);
  await delay(300);
  stopping = true;
  const [host, begun] = [watchHost(), performance.now()];
  const end = await node.terminate();
  await Promise.all(lanes);
  expect(end).toMatchObject({ code: 0, stderr: '' });
  expect(underWay).toEqual(lanes.map(() => 200));
  expect(ended.size).toBe(lanes.length);
  expect(performance.now() - begun).toBeLessThan(host.bound(9_000));
  expect(answered.length).toBeGreaterThan(20);
  expect(refused).toBeLessThan(answered.length);

  await using again = await runNode({ dataDir: DATA_DIR });
  const events = await eventsOf(again.base, order.supplier, order.ledgerId, '&verify=signatures');
  const ids = new Set(events.map((event) => event.id));
  for (const { event_id } of answered) expect(ids.has(event_id)).toBe(true);
});

test('idle connections do not delay SIGINT', async () => {
  const node = await startNodeProcess({ DATA_DIR: freshDir() });
  const { port } = new URL(node.base);
  const idle = connect(Number(port), '127.0.0.1');
  idle.on('error', () => {});
  await fetch(`${node.base}/health`);
  const [host, begun] = [watchHost(), performance.now()];
  node.child.kill('SIGINT');
  expect(await node.ended).toMatchObject({ code: 0, stderr: '' });
  expect(performance.now() - begun).toBeLessThan(host.bound(4_000));
  idle.destroy();
});

test('SIGTERM answers the taken events of a stream and ends it as UNAVAILABLE', async () => {
  const node = await startNodeProcess({ DATA_DIR: freshDir() });
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const client = grpcClient(node.grpcAddress);
  const stream = openStream(client, order.buyer);
  const outcomes: StreamOutcome[] = [];
  stream.on('data', (message: Message) => outcomes.push(outcomeOf(message)));
  const failed = once(stream, 'error');
  for (let index = 0; index < 50; index += 1) stream.write(streamed(master, order.buyer, index, { index }));
  await expect.poll(() => outcomes.length).toBeGreaterThan(0);
  const [host, begun] = [watchHost(), performance.now()];
  const end = await node.terminate();
  expect(end).toMatchObject({ code: 0, stderr: '' });
  expect(performance.now() - begun).toBeLessThan(host.bound(4_000));
  expect(await failed).toEqual([expect.objectContaining({ code: status.UNAVAILABLE })]);
  expect(outcomes.map(({ index, code }) => [index, code])).toEqual(outcomes.map((_, index) => [index, null]));
  client.close();
});

test('SIGTERM right after the announcement exits with 0', async () => {
  const node = await startNodeProcess({ DATA_DIR: freshDir() });
  expect(await node.terminate()).toMatchObject({ code: 0, stderr: '' });
});

test('SIGTERM to npm start stops npm and the node', async () => {
  const ports = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0', DATA_DIR: freshDir() };
  await using npm = startNpmScript('start', { ...process.env, ...ports });
  await expect.poll(() => npm.said(), { timeout: 40_000 }).toContain('try it');
  const health = `${/REST +(\S+)\/v1/.exec(npm.said())?.[1]}/health`;
  expect((await fetch(health)).status).toBe(200);
  expect(await npm.terminate()).toEqual([0, null]);
  await expect(fetch(health)).rejects.toThrow();
});

test('Ctrl-C under npm start, which reaches the node twice, finishes the call in flight and exits with 0', async () => {
  const ports = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0', DATA_DIR: freshDir() };
  await using npm = startNpmScript('start', { ...process.env, ...ports });
  await expect.poll(() => npm.said(), { timeout: 40_000 }).toContain('try it');
  const call = openTextSocket(Number(/REST +\S+:(\d+)\/v1/.exec(npm.said())?.[1]));
  call.write('POST /v1/actors HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{');
  await delay(100);
  const ended = npm.interrupt();
  await delay(100);
  call.write('}');
  expect(await ended).toEqual([0, null]);
  expect(parts(call.text)).toMatchObject({ status: 200 });
});

test('SIGTERM to npm run cluster:local stops npm and the process that it started', async () => {
  const ports = { PORT: '0', GRPC_PORT: '0', INTERNAL_PORT: '1' };
  await using npm = startNpmScript('cluster:local', { ...process.env, ...ports }, ['balance', '127.0.0.1']);
  await expect.poll(() => npm.said(), { timeout: 40_000 }).toContain('One address');
  const port = /REST on port (\d+)/.exec(npm.said())?.[1];
  await npm.terminate();
  // The balancer has ended: nothing listens on its port any more.
  await expect
    .poll(() =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => 'open',
        (error) => error.cause?.code,
      ),
    )
    .toBe('ECONNREFUSED');
});
