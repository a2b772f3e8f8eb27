import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createClusterMetrics } from '../../../../cluster/metrics.ts';
import type { Projection } from '../../../../src/domain/event/projection.ts';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession } from '../../../../src/store/cassandra/session/session.ts';
import { OutcomeUnknown } from '../../../../src/store/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { faultySession } from '../../../support/cassandra-faults.ts';
import { entriesAfter, entriesFor, headOf, newLedgerId } from '../../../support/store-entries.ts';

const bucketEvents = 8;
const inLine = (seq: number): Projection[] => [{ kind: 'line', list: 'list', order: `o${seq}`, value: 'v' }];

/** Nodes over the same tables, each with faults of its own. */
function newNodes() {
  const tables = new SimulatedTables();
  return {
    node(around: (session: CqlSession) => CqlSession = (session) => session) {
      const faults = faultySession();
      const session = around(faults.around(directSession(tables)));
      const store = new CassandraLedgerStore({ session, now: Date.now, random: randomBytes, bucketEvents });
      return { faults, store };
    },
  };
}

/** Holds plain writes back until they are let go. */
function held() {
  const waiting: (() => void)[] = [];
  let isHeld = true;
  return {
    around: (session: CqlSession): CqlSession => ({
      ...session,
      write: async (statements) => {
        if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
        return session.write(statements);
      },
    }),
    waiting,
    release() {
      isHeld = false;
      for (const go of waiting.splice(0)) go();
    },
  };
}

/** Until what was begun by a reading has ended: nothing here waits for anything but promises. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A node whose append of `events` events was written without its projections. */
async function abandoned(events: number) {
  const nodes = newNodes();
  const { faults, store } = nodes.node();
  const claim = await store.claim(newLedgerId());
  const entries = entriesFor(claim, events, { projections: inLine });
  faults.failWrites('line', 1_000);
  await expect(store.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
  return { faults, store, ledgerId: claim.ledgerId, entries, other: nodes.node().store };
}

async function metricOf(store: CassandraLedgerStore): Promise<string> {
  const registry = new Registry();
  createClusterMetrics({
    shards: () => ({ held: 0, leaving: 0, elsewhere: 0 }),
    projectionLag: () => store.projectionLag(),
    clock: () => ({ aheadMs: 0, isRight: true }),
    badRedisValues: { member: 0, order: 0, lease: 0, news: 0 },
  }).register(registry);
  return registry.getSingleMetricAsString('svc_projection_lag_events');
}

test('delayed projections are counted until they are written', async () => {
  const gate = held();
  const { store } = newNodes().node(gate.around);
  const claims = [await store.claim(newLedgerId()), await store.claim(newLedgerId())];
  const appends = claims.map((claim, at) =>
    store.append(claim, entriesFor(claim, at === 0 ? 3 : 2, { projections: inLine })),
  );
  await settled();
  expect(gate.waiting.length).toBeGreaterThan(0);
  expect(store.projectionLag()).toBe(5);
  expect(await metricOf(store)).toMatch(/^svc_projection_lag_events 5$/m);
  gate.release();
  await Promise.all(appends);
  expect(store.projectionLag()).toBe(0);
  expect(await metricOf(store)).toMatch(/^svc_projection_lag_events 0$/m);
});

test('a batch that was never written is not counted', async () => {
  const { faults, store } = newNodes().node();
  const claim = await store.claim(newLedgerId());
  faults.failDecisions('lost');
  await expect(store.append(claim, entriesFor(claim, 3, { projections: inLine }))).rejects.toBeInstanceOf(
    OutcomeUnknown,
  );
  expect(store.projectionLag()).toBe(0);
});

test('abandoned projections are counted until a claim of this node has written them', async () => {
  const { faults, store, ledgerId, entries } = await abandoned(3);
  expect(store.projectionLag()).toBe(3);
  await settled();
  expect(store.projectionLag()).toBe(3);
  await expect(store.claim(ledgerId)).rejects.toMatchObject({ code: 'unavailable' });
  store.projectionLag();
  await settled();
  expect(store.projectionLag()).toBe(3);
  faults.failWrites('line', 0);
  const newer = await store.claim(ledgerId);
  expect(store.projectionLag()).toBe(0);
  await store.append(newer, entriesAfter(headOf(entries), 1, { projections: inLine }));
  expect(store.projectionLag()).toBe(0);
});

test.each([3, bucketEvents])(
  'projections of %i events that another node completed are not counted after the next reading but one',
  async (count) => {
    const { store, ledgerId, other } = await abandoned(count);
    await other.claim(ledgerId);
    expect((await other.lines('list', { limit: 100 })).length).toBe(count);
    expect(store.projectionLag()).toBe(count);
    await settled();
    expect(store.projectionLag()).toBe(0);
  },
);

test('abandoned projections are counted while the store does not answer', async () => {
  const { faults, store, ledgerId, other } = await abandoned(2);
  await other.claim(ledgerId);
  faults.crash();
  store.projectionLag();
  await settled();
  expect(store.projectionLag()).toBe(2);
});
