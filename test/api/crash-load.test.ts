import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { isNightly } from '../support/nightly.ts';
import { suiteProcesses } from '../support/node-for-tests.ts';
import type { NodeProcess } from '../support/node-process.ts';
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
import { suiteDir } from '../support/running-node.ts';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const root = suiteDir();
const startProcess = suiteProcesses();
const start = (dataDir: string) => startProcess({ DATA_DIR: dataDir });

async function startAnew(): Promise<{ dataDir: string; node: NodeProcess }> {
  const dataDir = mkdtempSync(join(root, 'node-'));
  return { dataDir, node: await start(dataDir) };
}

/** The party as it signs with each of three keys. */
async function withKeys(base: string, party: Party): Promise<Party[]> {
  const parties = [party];
  for (let n = 0; n < 2; n += 1) {
    const key = newKeyPair();
    const made = await done(base, 'POST', `/v1/actors/${party.actorId}/keys`, party, {
      public_key: key.publicKey,
      algorithm: 'Ed25519',
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
    const page = await done(base, 'GET', `/v1/traceledger/master/${uuid}/events?verify=signatures`, order.buyer);
    expect(page.body).toMatchObject({ count: 41, integrity: { verified: true, issues: [] } });
    expect(page.rows('events').map((event) => event.master_seq)).toEqual(Array.from({ length: 41 }, (_, seq) => seq));
  }
}

/**
 * Sends all of them at once, and keeps the answers; whatever was answered before must be answered the same. How many
 * got none.
 */
async function sendAll(
  base: string,
  load: Load,
  answers: Map<number, Fields>,
  onAnswer: () => void = () => {},
): Promise<number> {
  let lost = 0;
  await Promise.all(
    all.map(async (n) => {
      const answer = await send(base, load, n);
      if (answer === null) {
        lost += 1;
        return;
      }
      expect(answer).toEqual(answers.get(n) ?? answer);
      answers.set(n, answer);
      onAnswer();
    }),
  );
  return lost;
}

test('200 concurrent appends by six keys on five masters make one chain', async () => {
  const { node } = await startAnew();
  const load = await prepare(node.base);
  const answers = new Map<number, Fields>();
  expect(await sendAll(node.base, load, answers)).toBe(0);
  await check(node.base, load, answers);
  expect(await node.terminate()).toMatchObject({ code: 0, stderr: '' });
});

// The node may have answered them all before this process gets to read so many answers: then an earlier one is tried.
const rounds = isNightly
  ? [
      [20, 8, 2, 1],
      [100, 40, 10, 1],
    ]
  : [[20, 8, 2, 1]];
test.each(rounds)(
  '200 concurrent appends make one chain when the node is killed at answer %i or earlier',
  async (...killsAt) => {
    let { dataDir, node } = await startAnew();
    let load = await prepare(node.base);
    let answers = new Map<number, Fields>();
    let lost = 0;
    for (const killAt of killsAt) {
      const { base, kill } = node;
      let killed: Promise<void> | null = null;
      lost = await sendAll(base, load, answers, () => {
        if (answers.size >= killAt) killed ??= kill();
      });
      await killed;
      node = await start(dataDir);
      if (lost > 0) break;
      [load, answers] = [await prepare(node.base), new Map()];
    }
    // The kill came while some were answered and others under way.
    expect(lost).toBeGreaterThan(0);
    expect(answers.size).toBe(all.length - lost);
    expect(answers.size).toBeGreaterThan(0);

    // What was answered before the kill is there after it.
    const { base } = node;
    const events = await eventsOf(base, load.order.buyer, load.order.ledgerId);
    const ids = new Set(events.map((event) => event.id));
    for (const answer of answers.values()) expect(ids.has(answer.event_id)).toBe(true);
    // All are sent again, and once more: each is answered as it was, and nothing is added.
    for (const _ of [1, 2]) {
      expect(await sendAll(base, load, answers)).toBe(0);
      await check(base, load, answers);
    }
  },
);
