import { expect, test } from 'vitest';
import type { BackgroundLimiter } from '../../../src/runtime/background-limiter.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { type FindPage, type LookupName, type RecordStore, TooManyDeleted } from '../../../src/store/record-store.ts';
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
  const { index, known } = knownIn(records, clock, () => node.isStopped);
  await known.find();
  return { clock, index, known, change, readings, node };
}

function knownIn(records: RecordStore, clock: ManualClock, isStopped = () => false) {
  const index = new SubscriptionIndex(new MemoryLedgerStore(() => clock.now()), () => {});
  const known = new KnownSubscriptions({
    subscriptions: subscriptionsIn(records),
    index,
    limiter: { take: async () => {} } as unknown as BackgroundLimiter,
    clock,
    isShared: true,
    isStopped,
    retryUntilStopped: (_, work) => work(),
    added: () => {},
    ended: () => {},
  });
  return { index, known };
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

/**
 * A store with `live` subscriptions, in which others were made and ended at the times `ended` (ms after `startMs`). It
 * reads no list with more than 100 of those between the bounds of a page.
 */
async function amongEnded(live: readonly number[], ended: readonly number[]) {
  const clock = new ManualClock(startMs + 9_000_000);
  const memory = new MemoryRecordStore();
  for (const at of live) await subscriptionsIn(memory).create(subscriptionOf(at));
  const deleted = { times: ended.map((at) => new Date(startMs + at).toISOString()) };
  let failures = 0;
  let pages = 0;
  const records = beforeCalls(memory, {
    find: async (_: string, __: LookupName, { after, before }: FindPage) => {
      pages += 1;
      const between = deleted.times.filter(
        (time) => (after === undefined || time > after.order) && (before === undefined || time < before),
      );
      if (between.length <= 100) return;
      failures += 1;
      throw new TooManyDeleted(new Error('too many deleted rows'));
    },
  });
  const counts = () => {
    const counted = { failures, pages };
    [failures, pages] = [0, 0];
    return counted;
  };
  return {
    clock,
    deleted,
    counts,
    change: () => subscriptionsIn(memory).create(subscriptionOf(8_999_999)),
    ...knownIn(records, clock),
  };
}

test('all active subscriptions are found, however many that have ended stand between them', async () => {
  const live = [0, 1, 4_000_000, 8_999_000, 8_999_998];
  const ended = Array.from({ length: 1_000 }, (_, at) => 1_000_000 + 7_990 * at);
  const { clock, deleted, counts, change, known, index } = await amongEnded(live, ended);
  await known.find();
  for (const at of live) expect(index.get(uuid(100 + at))).toBeDefined();
  expect(counts().failures).toBeGreaterThan(10);
  await change();
  await known.catchUp();
  expect(index.count).toBe(live.length + 1);
  expect(counts().failures).toBe(0);
  deleted.times = [];
  clock.jump(3 * 60 * 60_000 + 1);
  await known.find();
  expect(counts()).toEqual({ failures: 0, pages: 1 });
});

test('a reading fails if a minute of the list cannot be read', async () => {
  const { counts, known } = await amongEnded(
    [0],
    Array.from({ length: 200 }, (_, at) => 8_990_000 + at),
  );
  await expect(known.find()).rejects.toBeInstanceOf(TooManyDeleted);
  expect(counts().failures).toBeLessThan(40);
});
