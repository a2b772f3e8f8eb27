import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import {
  createClient,
  type FollowedEvent,
  type FollowRequest,
  type LedgerTrustClient,
  ProofRefused,
  Watermarks,
} from '../../src/client/index.ts';
import { type LogSigner, signCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import { onLoopback } from '../support/loopback.ts';
import { append, newMaster, newOrder, type Party } from '../support/parties.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

// Heartbeats come soon. A checkpoint is made ready a second before the heartbeat that brings it.
vi.mock('../../src/runtime/limits/limits.ts', async (original) => {
  const { limits } = await original<typeof import('../../src/runtime/limits/limits.ts')>();
  return { limits: { ...limits, followHeartbeatMs: 1_250 } };
});
/** On a busy machine a checkpoint may miss some heartbeats. */
const soon = { timeout: 20 * limits.followHeartbeatMs };
const serviceName = 'ledger.example/v1';
const dir = suiteDir();
let files = 0;
const node = await runNode({ env: { LOG_ORIGIN: serviceName } });
afterAll(() => node[Symbol.asyncDispose]());
const order = await newOrder(node.base, { keyed: false });
const master = await newMaster(order);
await append(master, order.buyer, 'COUNTED', { n: 1 });
const ledgerOrigin = `${serviceName}/ledgers/${order.ledgerId}`;
const masterOrigin = `${serviceName}/masters/${master.uuid}`;

function clientOf(
  { apiKey }: Party,
  transport: 'rest' | 'grpc',
  watermarks: Watermarks,
  baseUrl = node.base,
): LedgerTrustClient {
  const client = createClient({ baseUrl, grpcUrl: `http://${node.grpcAddress}`, transport, apiKey, watermarks });
  onTestFinished(() => client.close());
  return client;
}

function newWatermarks() {
  const watermarks = new Watermarks(join(dir, `watermarks-${files++}.json`));
  return { watermarks, kept: async (origin: string) => (await watermarks.read())?.checkpoints.get(origin) };
}

/** Follows until the test ends, or the stream does. */
function follow(client: LedgerTrustClient, what: FollowRequest) {
  const events: FollowedEvent[] = [];
  const ended = (async () => {
    for await (const event of client.follow(what)) events.push(event);
  })();
  ended.catch(() => {});
  return { ended, seqs: () => events.map(({ seq }) => seq) };
}

const sizeOf = (note: string | undefined) => Number(note?.split('\n')[1]);

test.each(['rest', 'grpc'] as const)(
  'over %s, checkpoints of heartbeats become the watermarks of what is followed, and move on with it',
  async (transport) => {
    const { watermarks, kept } = newWatermarks();
    const client = clientOf(order.supplier, transport, watermarks);
    follow(client, { ledgerId: order.ledgerId, after: -1 });
    follow(client, { masterId: master.uuid, ledgerId: order.ledgerId, after: -1 });
    await expect.poll(() => kept(ledgerOrigin), soon).toMatch(/^ledger\.example\/v1\/ledgers\//);
    await expect.poll(() => kept(masterOrigin), soon).toMatch(/^ledger\.example\/v1\/masters\//);
    const before = sizeOf(await kept(ledgerOrigin));
    await append(master, order.buyer, 'COUNTED', { n: 2 });
    await expect.poll(async () => sizeOf(await kept(ledgerOrigin)), soon).toBe(before + 1);
    // The same note that the service gives out when it is asked.
    expect((await client.checkpoint(order.ledgerId)).note).toBe(await kept(ledgerOrigin));
  },
);

/** The node behind a proxy that changes the checkpoints of heartbeats. */
async function forging(forge: (note: string) => string, showsConsistency = true): Promise<string> {
  const proxy = createServer((asked, answer) => {
    const { method, url: path, headers } = asked;
    if (!showsConsistency && path?.includes('/proof/consistency')) {
      answer.writeHead(503, { 'content-type': 'application/json' });
      answer.end(JSON.stringify({ error: { code: 'unavailable', message: 'Later.' } }));
      return;
    }
    const passed = request(new URL(path ?? '', node.base), { method, headers }, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers);
      let rest = '';
      given.setEncoding('utf8');
      given.on('data', (chunk: string) => {
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) answer.write(`${forgedBlock(block, forge)}\n\n`);
      });
      given.on('end', () => answer.end(rest)).on('error', () => answer.destroy());
    });
    passed.on('error', () => answer.destroy());
    answer.on('close', () => passed.destroy());
    asked.pipe(passed);
  });
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${await onLoopback(proxy)}`;
}

function forgedBlock(block: string, forge: (note: string) => string): string {
  return block.replace(
    /"checkpoint":("(?:[^"\\]|\\.)*")/,
    (_, note: string) => `"checkpoint":${JSON.stringify(forge(JSON.parse(note) as string))}`,
  );
}

/** A thief of the node's log key. */
function thief(): LogSigner {
  const key = createPrivateKey(readFileSync(join(node.dataDir, 'log.pem')));
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
  return { serviceName, publicKey, sign: (message) => sign(null, message, key) };
}

const otherRoot = (note: string) =>
  signCheckpoint({ origin: ledgerOrigin, size: sizeOf(note), root: new Uint8Array(32) }, thief());

test.each([
  ['of another log', (note: string) => note.replaceAll(ledgerOrigin, masterOrigin), 'wrong_origin'],
  [
    'with another root',
    (note: string) => note.replace(/\n[^\n]{43}=\n/, `\n${'A'.repeat(43)}=\n`),
    'invalid_signature',
  ],
  ['of no key of the service', (note: string) => note.replace(/(— \S+ )\S{5}/, '$1AAAAA'), 'unknown_log_key'],
  ['with a line more', (note: string) => note.replace('\n\n', '\nextension\n\n'), 'malformed'],
  ['by the stolen key that contradicts the kept one', otherRoot, 'checkpoints_contradict'],
])('a note %s ends following, and the kept one stays', async (_, forge, reason) => {
  const { watermarks, kept } = newWatermarks();
  await clientOf(order.supplier, 'rest', watermarks).checkpoint(order.ledgerId);
  const before = await watermarks.read();
  const client = clientOf(order.supplier, 'rest', watermarks, await forging(forge));
  const { ended, seqs } = follow(client, { ledgerId: order.ledgerId, after: -1 });
  const error = await ended.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ProofRefused);
  expect(error).toMatchObject({ reason });
  expect(seqs().length).toBe(sizeOf(await kept(ledgerOrigin)));
  expect(await watermarks.read()).toEqual(before);
});

test.each([
  [-1, { code: 'integrity_failed', details: { issues: [{ type: 'wrong_checkpoint' }] } }],
  // The proof of the event before brings a checkpoint, which convicts the service together with the first one.
  [1, { reason: 'checkpoints_contradict' }],
])(
  'a checkpoint by the stolen key, the first one of its log, ends following behind %i: it is not of the events that came',
  async (after, expected) => {
    const { watermarks, kept } = newWatermarks();
    const client = clientOf(order.supplier, 'rest', watermarks, await forging(otherRoot));
    const { ended, seqs } = follow(client, { ledgerId: order.ledgerId, after });
    await expect(ended).rejects.toMatchObject(expected);
    // It is kept: the service cannot deny that its key signed it.
    expect(seqs().length).toBe(sizeOf(await kept(ledgerOrigin)) - after - 1);
  },
);

test('a checkpoint by the stolen key is compared with the events, also if no proof of consistency is given', async () => {
  const { watermarks, kept } = newWatermarks();
  await clientOf(order.supplier, 'rest', watermarks).checkpoint(order.ledgerId, { size: 2 });
  const client = clientOf(order.supplier, 'rest', watermarks, await forging(otherRoot, false));
  const { ended } = follow(client, { ledgerId: order.ledgerId, after: -1 });
  await expect(ended).rejects.toMatchObject({
    code: 'integrity_failed',
    details: { issues: [{ type: 'wrong_checkpoint' }] },
  });
  expect(sizeOf(await kept(ledgerOrigin))).toBe(2);
});

test('a checkpoint of a master by the stolen key is not of the events that came, from its middle on either', async () => {
  const ofMaster = (note: string) =>
    signCheckpoint({ origin: masterOrigin, size: sizeOf(note), root: new Uint8Array(32) }, thief());
  for (const [after, expected] of [
    [-1, { code: 'integrity_failed' }],
    [0, { reason: 'checkpoints_contradict' }],
  ] as const) {
    const client = clientOf(order.supplier, 'rest', newWatermarks().watermarks, await forging(ofMaster));
    await expect(follow(client, { masterId: master.uuid, after }).ended).rejects.toMatchObject(expected);
  }
});

test('honest checkpoints go with what is followed from any place on', async () => {
  const { ledgerId, supplier } = order;
  const followed = [
    ...[-1, 0, 2].map((after) => ({ origin: ledgerOrigin, what: { ledgerId, after } })),
    ...[-1, 0, 1].map((after) => ({ origin: masterOrigin, what: { masterId: master.uuid, after } })),
  ];
  const streams = followed.map(({ origin, what }) => {
    const { watermarks, kept } = newWatermarks();
    const { ended } = follow(clientOf(supplier, 'rest', watermarks), what);
    return { ended, size: async () => sizeOf(await kept(origin)) };
  });
  const sizes = () => Promise.all(streams.map(({ size }) => size()));
  const failed = Promise.race(streams.map(({ ended }) => ended));
  failed.catch(() => {});
  let before = streams.map(() => 0);
  // A stream takes a checkpoint once it has compared the one before. So the second one is kept behind a comparison.
  for (const n of [3, 4, 5]) {
    const haveMoved = async () => (await sizes()).every((size, at) => size > (before[at] ?? 0));
    await Promise.race([expect.poll(haveMoved, soon).toBe(true), failed]);
    before = await sizes();
    await append(master, order.buyer, 'COUNTED', { n });
  }
  await expect(Promise.race([failed, Promise.resolve('on')])).resolves.toBe('on');
});
