import { expect, test } from 'vitest';
import type { BackgroundLimiter } from '../../../src/runtime/background-limiter.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { KnownSubscriptions } from '../../../src/webhooks/tail/known-subscriptions.ts';
import { SubscriptionIndex } from '../../../src/webhooks/tail/subscription-index.ts';
import { ManualClock, settled } from '../../support/clock.ts';
import { supplier, uuid } from '../../support/commands.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { beforeCalls } from '../../support/world.ts';

const startMs = Date.UTC(2026, 10, 21);

/** A node of a cluster in which another node changes subscriptions all the time. A reading takes `readMs`. */
async function amongChanges(readMs: number) {
  const clock = new ManualClock(startMs);
  const memory = new MemoryRecordStore();
  const others = subscriptionsIn(memory);
  const readings: number[] = [];
  const node = { isStopped: false };
  let made = 0;
  const change = () => others.create(subscriptionOf(made++));
  const records = beforeCalls(memory, {
    find: async () => {
      readings.push(clock.now());
      clock.jump(readMs);
      await change();
    },
  });
  const index = new SubscriptionIndex(new MemoryLedgerStore(() => clock.now()), () => {});
  const known = new KnownSubscriptions({
    subscriptions: subscriptionsIn(records),
    index,
    limiter: { take: async () => {} } as unknown as BackgroundLimiter,
    clock,
    isShared: true,
    isStopped: () => node.isStopped,
    retryUntilStopped: (_, work) => work(),
    added: () => {},
    ended: () => {},
  });
  await known.find();
  return { clock, index, known, change, readings, node };
}

function subscriptionOf(at: number): SubscriptionRecord {
  const target = { url: 'https://hooks.example/', eventTypes: [], ledgerId: uuid(9) };
  const createdAt = new Date(startMs + at).toISOString();
  return {
    id: uuid(100 + at),
    actorId: supplier,
    ...target,
    createdAt,
    sealedSecret: 's',
    endedAt: null,
    endedBy: null,
  };
}

test('ledgers that look for changes at once share a reading that begins after all of them have asked', async () => {
  const { index, known, change, readings } = await amongChanges(0);
  const before = readings.length;
  const first = known.catchUp();
  const { id } = await change();
  await Promise.all([first, ...Array.from({ length: 8 }, () => known.catchUp())]);
  expect(readings.length - before).toBe(2);
  expect(index.get(id)).toBeDefined();
});

test('a reading begins no sooner than the last one took after its end, and no later than a second', async () => {
  for (const { readMs, pauseMs } of [
    { readMs: 300, pauseMs: 300 },
    { readMs: 5_000, pauseMs: 1_000 },
  ]) {
    const { clock, known, readings } = await amongChanges(readMs);
    const endedMs = clock.now();
    const caughtUp = known.catchUp();
    await settled();
    const early = readings.length;
    await clock.advance(pauseMs - 1);
    expect(readings.length).toBe(early);
    await clock.advance(1);
    await caughtUp;
    expect(readings.at(-1)).toBe(endedMs + pauseMs);
  }
});

test('a node that is stopped while it rests does not read the subscriptions again', async () => {
  const { clock, known, readings, node } = await amongChanges(300);
  const before = readings.length;
  const caughtUp = known.catchUp();
  await settled();
  node.isStopped = true;
  await clock.advance(300);
  await caughtUp;
  expect(readings.length).toBe(before);
});
