import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { effectsOf } from '../support/attacks/effects.ts';
import type { AttackTarget } from '../support/attacks/target.ts';
import { pipelining, unreadAnswers } from '../support/attacks/unread-answers.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { append, type Master, newMaster, newOrder, type Order } from '../support/parties.ts';
import { productionSettings } from '../support/production-settings.ts';
import { temporaryDir } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const attackMs = 30_000;
const calmMs = 60_000;
const connections = 20;

let dir = '';
let node: NodeProcess;
let target: AttackTarget;
/** What honest callers append to. */
let order: Order;
let master: Master;

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  dir = temporaryDir();
  node = await startNodeProcess({
    ...productionSettings(dir),
    DATA_DIR: join(dir, 'data'),
    ...env,
  });
  order = await newOrder(node.base);
  master = await newMaster(order);
  const { hostname: host, port } = new URL(node.base);
  const grpcPort = Number(node.grpcAddress.split(':')[1]);
  target = { host, httpPort: Number(port), grpcPort, page: await largePage() };
  for (let n = 0; n < 200; n += 1) await append(master, order.buyer, 'NOTED', { warm: n });
}

/** A page of 2 MiB that another actor reads. */
async function largePage(): Promise<{ path: string; apiKey: string }> {
  const other = await newOrder(node.base);
  const big = await newMaster(other);
  for (let n = 0; n < 40; n += 1) await append(big, other.buyer, 'NOTED', { text: 'x'.repeat(60_000) });
  return { path: `/v1/ledgers/${other.ledgerId}/events?limit=1000`, apiKey: other.buyer.apiKey };
}

afterEach(async () => {
  await node.kill();
  rmSync(dir, { recursive: true, force: true });
});

/** What an attack sends at least, bytes: an unread answer takes four requests of its connection. */
const [pipelinedMin, unreadMin] = [1_000_000, connections * 4 * 40];
const attacks: [string, (signal: AbortSignal) => Promise<number>, number][] = [
  [
    'openapi.json asked for without end, nothing read',
    (signal) => pipelining(anonymous(), signal, connections),
    pipelinedMin,
  ],
  [
    'event pages asked for without end, nothing read',
    (signal) => pipelining(target, signal, connections),
    pipelinedMin,
  ],
  ['four unread event pages a connection', (signal) => unreadAnswers(target, signal, connections), unreadMin],
  ['unread files of the documentation', (signal) => unreadAnswers(anonymous(), signal, connections), unreadMin],
];
function anonymous(): AttackTarget {
  const { host, httpPort, grpcPort } = target;
  return { host, httpPort, grpcPort };
}

describe('a node in production mode with its own settings', () => {
  beforeEach(() => start({}));

  test.each(attacks)(
    'during %s memory, /v1/health and honest appends stay within their bounds',
    async (name, attack, leastBytes) => {
      const { pid = 0 } = node.child;
      const effects = await effectsOf({ base: node.base, pid, order, master }, attack, attackMs, calmMs);
      process.stdout.write(`${name}: ${JSON.stringify(effects)}\n`);
      expect(effects.attackCount).toBeGreaterThan(leastBytes);
      expect(effects.failures).toEqual([]);
      expect(effects.rssMostMib).toBeLessThan(700);
      expect(effects.healthSlowestMs).toBeLessThan(1_000);
      expect(effects.appendP99Ms).toBeLessThan(300);
      expect(effects.rssAfterMib - effects.rssBeforeMib).toBeLessThan(100);
    },
  );

  test('60 connections with one unread page or four end within 30 s', async () => {
    const { page } = target;
    const ending = Promise.all(
      Array.from({ length: 60 }, async (_, at) => {
        const socket = connect(target.httpPort, target.host).on('error', () => {});
        socket.pause();
        const request = `GET ${page?.path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${page?.apiKey}\r\n\r\n`;
        socket.write(request.repeat(at % 2 === 0 ? 1 : 4));
        // A socket that is never read from hears of its end by a write that fails. HTTP/1 passes over an empty line
        // before a request.
        const asking = setInterval(() => socket.write('\r\n'), 250);
        await new Promise((resolve) => socket.once('close', resolve));
        clearInterval(asking);
        return performance.now();
      }),
    );
    // Their pages have been made when a page that is asked for behind them was answered, or refused.
    await delay(50);
    const behind = await fetch(`${node.base}${page?.path}`, { headers: { authorization: `Bearer ${page?.apiKey}` } });
    await behind.arrayBuffer();
    const begun = performance.now();
    const times = (await ending).map((endedMs) => endedMs - begun);
    process.stdout.write(`ended after ${Math.min(...times)} to ${Math.max(...times)} ms\n`);
    expect(Math.max(...times)).toBeLessThan(30_500);
  });
});

describe('a node with a heap of 256 MiB', () => {
  beforeEach(() => start({ NODE_OPTIONS: '--max-old-space-size=256' }));

  test.each(attacks)('during %s the process does not end', async (name, attack, leastBytes) => {
    const { pid = 0 } = node.child;
    const effects = await effectsOf({ base: node.base, pid, order, master }, attack, attackMs, 5_000);
    process.stdout.write(`${name}, small heap: ${JSON.stringify(effects)}\n`);
    expect(effects.attackCount).toBeGreaterThan(leastBytes);
    expect(node.child.exitCode).toBeNull();
    expect((await fetch(`${node.base}/v1/health`)).status).toBe(200);
  });
});
