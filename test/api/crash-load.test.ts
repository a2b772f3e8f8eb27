import { rmSync } from 'node:fs';
import { afterAll, expect, test, vi } from 'vitest';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import {
  append,
  eventsOf,
  type Master,
  newKeyPair,
  newMaster,
  newOrder,
  type Order,
  type Party,
} from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';
import { temporaryDir } from '../support/running-node.ts';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const dirs: string[] = [];
afterAll(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});

async function start(): Promise<{ dataDir: string; node: NodeProcess }> {
  const dataDir = temporaryDir();
  dirs.push(dataDir);
  return { dataDir, node: await startNodeProcess({ DATA_DIR: dataDir }) };
}

/** The party as it signs with each of three keys. */
async function withKeys(base: string, party: Party): Promise<Party[]> {
  const parties = [party];
  for (let n = 0; n < 2; n += 1) {
    const key = newKeyPair();
    const made = await done(base, 'POST', `/v1/actors/${party.actorId}/keys`, {
      headers: party.bearer,
      body: { public_key: key.publicKey, algorithm: 'Ed25519' },
    });
    parties.push({ ...party, key, kid: made.text('kid') });
  }
  return parties;
}

interface Load {
  readonly order: Order;
  readonly masters: readonly Master[];
  readonly signers: readonly Party[];
}

async function prepare(base: string): Promise<Load> {
  const order = await newOrder(base);
  const signers = (await Promise.all([order.buyer, order.supplier].map((party) => withKeys(base, party)))).flat();
  const masters = await Promise.all([1, 2, 3, 4, 5].map((n) => newMaster(order, order.supplier, `PO-${n}`)));
  return { order, masters, signers };
}

/** One of 200: always the same event with the same idempotency key. null where nothing was answered. */
async function send(base: string, load: Load, n: number): Promise<Fields | null> {
  const master = load.masters[n % load.masters.length];
  const signer = load.signers[n % load.signers.length];
  if (master === undefined || signer === undefined) throw new Error('no master or signer');
  try {
    const answer = await append(
      { ...master, base },
      signer,
      'NOTED',
      { n },
      { headers: { 'idempotency-key': `n-${n}` } },
    );
    if (answer.status === 200) return answer.body;
    // Stopped in the middle of it: may be tried again, like no answer at all.
    expect(['unavailable', 'outcome_unknown', 'idempotency_in_progress', 'overloaded']).toContain(answer.code);
    return null;
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

const all = Array.from({ length: 200 }, (_, n) => n);

/** One gapless chain, whole, and each answered event in it exactly once. */
async function check(base: string, load: Load, answers: ReadonlyMap<number, Fields>): Promise<void> {
  const { order, masters } = load;
  const events = await eventsOf(base, order.supplier, order.ledgerId, '&verify=signatures');
  expect(events.map((event) => event.seq)).toEqual(events.map((_, seq) => seq));
  const notes = events.filter((event) => event.event_type === 'NOTED');
  const found = notes.map((event) => (event.payload as Fields).n as number);
  expect(found.toSorted((a, b) => a - b)).toEqual(all);
  for (const event of notes) {
    const n = (event.payload as Fields).n as number;
    expect(answers.get(n)).toMatchObject({
      event_id: event.id,
      seq: event.seq,
      hash: event.hash,
      master_seq: event.master_seq,
    });
  }
  for (const { uuid } of masters) {
    const page = await done(base, 'GET', `/v1/traceledger/master/${uuid}/events?verify=signatures`, {
      headers: order.buyer.bearer,
    });
    expect(page.body).toMatchObject({ count: 41, integrity: { verified: true, issues: [] } });
    expect(page.rows('events').map((event) => event.master_seq)).toEqual(Array.from({ length: 41 }, (_, seq) => seq));
  }
}

test('200 appends at once by both parties with three keys each on 5 masters make one chain', async () => {
  const { node } = await start();
  const load = await prepare(node.base);
  const answers = new Map<number, Fields>();
  await Promise.all(
    all.map(async (n) => {
      const answer = await send(node.base, load, n);
      if (answer !== null) answers.set(n, answer);
    }),
  );
  expect(answers.size).toBe(200);
  await check(node.base, load, answers);
  expect(await node.terminate()).toMatchObject({ code: 0, stderr: '' });
});

/** Few enough that a kill at the n-th answer comes before the last one, however slowly this process gets to read answers. */
const atOnce = 50;

test.each([
  [20, 100],
  [45, 130],
])('also when the node is killed under the load, at answer %i and again at answer %i', async (...killsAt) => {
  let { dataDir, node } = await start();
  const load = await prepare(node.base);
  const answers = new Map<number, Fields>();
  let lost = 0;
  for (const killAt of [...killsAt, Number.POSITIVE_INFINITY]) {
    const { base, kill } = node;
    const open = all.filter((n) => !answers.has(n)).values();
    let killed: Promise<void> | null = null;
    const sender = async () => {
      for (const n of open) {
        const answer = await send(base, load, n);
        if (answer !== null) answers.set(n, answer);
        else lost += 1;
        if (answers.size >= killAt) killed ??= kill();
        if (killed !== null) return;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, sender));
    if (killAt > all.length) break;
    await killed;
    expect(answers.size).toBeGreaterThanOrEqual(killAt);
    expect(answers.size).toBeLessThan(all.length);
    node = await startNodeProcess({ DATA_DIR: dataDir });
    // What was answered before the kill is there after it.
    const { order } = load;
    const events = await eventsOf(node.base, order.buyer, order.ledgerId);
    const ids = new Set(events.map((event) => event.id));
    for (const answer of answers.values()) expect(ids.has(answer.event_id)).toBe(true);
  }
  // The kills came while calls were under way.
  expect(lost).toBeGreaterThan(0);
  expect(answers.size).toBe(all.length);
  await check(node.base, load, answers);
  // A retry of what was answered is the first answer again.
  for (const n of [0, 77, 199]) expect(await send(node.base, load, n)).toEqual(answers.get(n));
  await check(node.base, load, answers);
  await node.kill();
});
