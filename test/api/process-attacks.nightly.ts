import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { anonymousMib } from '../../bench/server-process.ts';
import { floods, nodeEnds } from '../support/attacks/grpc-floods.ts';
import { hugeBody, manyHeaders, packedMessage, slowHeaders } from '../support/attacks.ts';
import { idleConnections } from '../support/idle-connections.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { temporaryDir } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Idle connections at either port. */
const idleWanted = 5_000;
/** What an idle connection may cost the node. */
const idleMaxKib = 40;
/** What the node may take on top of what it has when nobody attacks. */
const attackMaxMib = 160;
/** How long /health may take meanwhile; attackers and who asks share a process and the processors with the node. */
const healthMaxMs = 2_000;

/** One for each attack: memory that an earlier one took and left is not counted off a later one. */
let node: NodeProcess;
let dataDir = '';
let http = '';
/** What it has when nobody attacks, MiB. */
let calm = 0;
const memoryNow = () => anonymousMib(node.child.pid ?? 0);

beforeEach(async () => {
  dataDir = temporaryDir();
  node = await startNodeProcess({ DATA_DIR: dataDir });
  http = new URL(node.base).host;
  for (let asked = 0; asked < 200; asked += 1) await health();
  calm = memoryNow();
});
afterEach(async () => {
  await node.kill();
  rmSync(dataDir, { recursive: true, force: true });
});

/** How long it took, in ms. */
async function health(): Promise<number> {
  const begun = performance.now();
  const response = await fetch(`${node.base}/health`);
  expect(response.status).toBe(200);
  await response.text();
  return performance.now() - begun;
}

/** Runs an attack: the most memory that the node had meanwhile, in MiB, and the longest that /health took, in ms. */
async function during(attack: () => Promise<void>) {
  let isOver = false;
  const ended = attack().finally(() => {
    isOver = true;
  });
  let [memory, slowest] = [0, 0];
  do {
    slowest = Math.max(slowest, await health());
    memory = Math.max(memory, memoryNow());
    await delay(20);
  } while (!isOver);
  await ended;
  return { memory, slowest };
}

/** Open files that this process, and so the node and its clients, may have. */
function filesMax(): number {
  const limit = /^Max open files +\d+ +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit ?? 0);
}

const ownFiles = 500;
const idle = Math.min(idleWanted, Math.floor((filesMax() - ownFiles) / 2));
const fewer = idle < idleWanted ? ` (${idleWanted} wanted; the file limit here allows no more)` : '';

test(`${idle} idle connections at either port${fewer} cost little memory and leave /health answering`, async () => {
  using atHttp = await idleConnections(Number(new URL(node.base).port), 'http', idle);
  using atGrpc = await idleConnections(Number(node.grpcAddress.split(':')[1]), 'grpc', idle);
  const { memory, slowest } = await during(() => delay(2_000));
  expect([await atHttp.open(), await atGrpc.open()]).toEqual([idle, idle]);
  expect(readdirSync(`/proc/${node.child.pid}/fd`).length).toBeGreaterThanOrEqual(2 * idle);
  expect(slowest).toBeLessThan(healthMaxMs);
  expect(((memory - calm) * 1_024) / (2 * idle)).toBeLessThan(idleMaxKib);
});

const times = async (count: number, attack: () => Promise<unknown>): Promise<void> => {
  await Promise.all(Array.from({ length: count }, attack));
};
const bomb = gzipSync(Buffer.alloc(512 * 1024 * 1024));
const register = '/svc.v1.DeveloperService/RegisterDeveloper';
const target = () => ({ grpc: node.grpcAddress });
const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;

test.each<[string, () => Promise<void>]>([
  [
    '2,000 requests with headers that never end',
    async () => {
      const sockets = Array.from({ length: 2_000 }, () => slowHeaders(http));
      await delay(2_000);
      for (const socket of sockets) socket.destroy();
    },
  ],
  ['50 requests of 100,000 headers', () => times(50, () => manyHeaders(http, 100_000))],
  ['20 bodies of 1 GiB, REST', () => times(20, () => hugeBody(http, post('/v1/developer/register'), 2 ** 30))],
  ['20 bodies of 1 GiB, Connect', () => times(20, () => hugeBody(http, post(register), 2 ** 30))],
  [
    '20 messages that unpack to 512 MiB, Connect',
    () =>
      times(20, async () => {
        const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
        const response = await fetch(`${node.base}${register}`, { method: 'POST', headers, body: bomb });
        expect(await response.text()).toContain('payload_too_large');
      }),
  ],
  [
    '20 messages that unpack to 512 MiB, gRPC',
    () => times(20, async () => expect(await packedMessage(node.grpcAddress, register, bomb)).toBe('8')),
  ],
  ['20,000 calls that are reset at once', () => times(2, () => nodeEnds(target(), floods['calls that are reset']))],
  [
    '20 calls with headers that never end (CONTINUATION flood)',
    () => times(20, async () => expect(await nodeEnds(target(), floods.CONTINUATION)).toBe(true)),
  ],
])('during %s memory stays bounded and /health answers', async (_, attack) => {
  const { memory, slowest } = await during(attack);
  expect(slowest).toBeLessThan(healthMaxMs);
  expect(memory - calm).toBeLessThan(attackMaxMib);
});
