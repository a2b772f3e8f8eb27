import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';
import { unboundedWalk, type Walk } from '../../../src/service/walking/walk.ts';
import { type Deliveries, deliveriesIn } from '../../../src/service/webhooks/deliveries.ts';
import { blockKind } from '../../../src/service/webhooks/delivery-block.ts';
import { type DeliveryRecord, deliveryIdOf } from '../../../src/service/webhooks/delivery-record.ts';
import type { HeldDelivery } from '../../../src/service/webhooks/due-deliveries.ts';
import type { RecordWrite } from '../../../src/store/record-store.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import {
  delivered,
  ledgerId as ledgerA,
  minuteMs,
  newDelivery,
  retried,
  startMs,
  subscriptionId,
} from '../../support/webhook-deliveries.ts';
import { beforeCalls, recordsWith } from '../../support/world.ts';

const mib = 1024 * 1024;
const ledgerB = '0199bbbb-0000-7000-8000-00000000000b';
const recordedAt = (ms: number) => isoTime(startMs + ms);

/**
 * Deliveries over a memory store that counts reads and writes of blocks, and can delay writes or answers. Blocks are
 * kept in a 32nd of `budgetBytes`.
 */
function rig(budgetBytes = mib) {
  const memory = new MemoryRecordStore();
  const budget = new MemoryBudget(budgetBytes);
  const writes: RecordWrite[] = [];
  const reads: string[] = [];
  const store = {
    gate: null as Promise<void> | null,
    after: null as (() => void) | null,
    afterRead: null as (() => Promise<unknown>) | null,
  };
  const records = recordsWith(memory, {
    get: async (kind, id) => {
      const found = await memory.get(kind, id);
      if (kind === blockKind) reads.push(id);
      await store.afterRead?.();
      return found;
    },
    put: async (write) => {
      if (write.kind === blockKind) writes.push(write);
      await store.gate;
      const put = await memory.put(write);
      store.after?.();
      return put;
    },
  });
  const deliveries = deliveriesIn(records, budget);
  return { memory, budget, writes, reads, store, deliveries, other: deliveriesIn(memory, new MemoryBudget(0)) };
}

/** The delivery of the event at `seq`, which is `seq` times `everyMs` after the start. */
function delivery(seq: number, over: { ledgerId?: string; everyMs?: number; createdMs?: number } = {}): DeliveryRecord {
  const { ledgerId = ledgerA, everyMs = 1, createdMs = 10_000 } = over;
  return newDelivery(seq, startMs + seq * everyMs, startMs + createdMs, ledgerId);
}

const range = (from: number, through: number, over: Parameters<typeof delivery>[1] = {}) => ({
  subscriptionId,
  ledgerId: over?.ledgerId ?? ledgerA,
  fromSeq: from,
  throughSeq: through,
  deliveries: Array.from({ length: through - from + 1 }, (_, at) => delivery(from + at, over)),
});
const seqs = (found: readonly DeliveryRecord[]) => found.map(({ place }) => place?.seq);
const nowMs = startMs + minuteMs;
const now = isoTime(nowMs);
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

async function firstDue(deliveries: Deliveries): Promise<HeldDelivery> {
  const [one] = (await deliveries.pending(subscriptionId, 64, now)).due;
  return one ?? expect.unreachable();
}

describe('recording a range', () => {
  test('64 events and an hour stand in one record; what is read back is what was recorded', async () => {
    const { deliveries, writes } = rig();
    expect(await deliveries.record(range(0, 149))).toBe(150);
    expect(writes).toHaveLength(3);
    expect(await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1_000 })).toEqual(
      range(0, 149).deliveries,
    );
    expect(await deliveries.record(range(150, 155, { everyMs: 25 * minuteMs }))).toBe(6);
    expect(writes).toHaveLength(5);
  });

  test('again, longer, with another subset, or cut elsewhere, records each delivery once', async () => {
    for (const again of [
      range(0, 9),
      range(0, 70),
      { ...range(0, 9), deliveries: range(3, 9).deliveries },
      { ...range(0, 9), throughSeq: 12 },
    ]) {
      const { deliveries } = rig();
      expect(await deliveries.record({ ...range(0, 9), deliveries: range(5, 9).deliveries })).toBe(5);
      expect(await deliveries.record(range(10, 20))).toBe(11);
      const added = await deliveries.record(again);
      expect(added).toBe(Math.max(0, again.deliveries.length - 21));
      const found = seqs(await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1_000 }));
      expect(new Set(found).size).toBe(found.length);
      expect(found).toHaveLength(16 + added);
    }
  });

  test('by two at once records each delivery once', async () => {
    const { deliveries, other } = rig();
    const counts = await Promise.all([deliveries.record(range(0, 100)), other.record(range(0, 60))]);
    expect(counts[0] + counts[1]).toBe(101);
    expect(seqs(await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1_000 }))).toEqual(upTo(101));
  });
});

describe.each([
  ['are kept', mib],
  ['are not kept', 0],
])('recording attempts while blocks %s', (_, budgetBytes) => {
  test('attempts recorded at once are one write, those recorded during a write the next one', async () => {
    const { deliveries, writes, store } = rig(budgetBytes);
    await deliveries.record(range(0, 63));
    const { due } = await deliveries.pending(subscriptionId, 64, now);
    writes.length = 0;
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    const first = due.slice(0, 16).map((one) => deliveries.replace(one, delivered(one, nowMs), startMs));
    await Promise.resolve();
    await Promise.resolve();
    const second = due.slice(16).map((one) => deliveries.replace(one, delivered(one, nowMs), startMs));
    gate.resolve();
    expect(await Promise.all([...first, ...second])).toEqual(Array(64).fill(true));
    expect(writes).toHaveLength(2);
    expect((await deliveries.pending(subscriptionId, 64, now)).due).toEqual([]);
  });

  test('two nodes that change one block do not undo each other’s changes', async () => {
    const { deliveries, other } = rig(budgetBytes);
    await deliveries.record(range(0, 9));
    const { due } = await deliveries.pending(subscriptionId, 64, now);
    const [one, two, three] = due;
    if (one === undefined || two === undefined || three === undefined) expect.unreachable();
    expect(await other.replace(one, delivered(one, nowMs), startMs)).toBe(true);
    expect(await deliveries.replace(two, delivered(two, nowMs), startMs)).toBe(true);
    // The other node's record stays.
    expect(await deliveries.replace(one, retried(one, nowMs), startMs)).toBe(false);
    const both = await Promise.all([
      deliveries.replace(three, delivered(three, nowMs), startMs),
      other.replace(three, retried(three, nowMs), startMs),
    ]);
    expect(both.filter((taken) => taken)).toHaveLength(1);
    const found = await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 2 });
    expect(found.map(({ status }) => status)).toEqual(['DELIVERED', 'DELIVERED']);
  });

  test('a write that landed without an answer counts as written when it is retried', async () => {
    const { deliveries, store } = rig(budgetBytes);
    await deliveries.record(range(0, 3));
    const one = await firstDue(deliveries);
    store.after = () => {
      store.after = null;
      throw new Error('no answer');
    };
    await expect(deliveries.replace(one, delivered(one, nowMs), startMs)).rejects.toThrow('no answer');
    expect(await deliveries.replace(one, delivered(one, nowMs), startMs)).toBe(true);
  });

  test('a delivery whose block was swept is not changed', async () => {
    const { deliveries, memory } = rig(budgetBytes);
    await deliveries.record(range(0, 3));
    const one = await firstDue(deliveries);
    await memory.sweep(startMs + 200 * 24 * 60 * minuteMs, 10);
    expect(await deliveries.replace(one, delivered(one, nowMs), startMs)).toBe(false);
  });

  test('a delivery whose block is damaged is not changed, and the record stays as it is', async () => {
    const { deliveries, memory } = rig(budgetBytes);
    await deliveries.record(range(0, 3));
    const one = await firstDue(deliveries);
    const id = one.blockId ?? expect.unreachable();
    const sound = (await memory.get(blockKind, id)) ?? expect.unreachable();
    await memory.put({ kind: blockKind, id, replaces: sound.version, value: '{}', lookups: [] });
    expect(await deliveries.replace(one, delivered(one, nowMs), startMs)).toBe(false);
    expect((await memory.get(blockKind, id))?.value).toBe('{}');
  });

  test('a block stays for 180 days while one of its deliveries is PENDING, and for 30 days afterwards', async () => {
    const { deliveries, memory } = rig(budgetBytes);
    const days = (count: number) => startMs + minuteMs + count * 24 * 60 * minuteMs;
    await deliveries.record(range(0, 1));
    const [one, two] = (await deliveries.pending(subscriptionId, 64, now)).due;
    if (one === undefined || two === undefined) expect.unreachable();
    await deliveries.replace(one, delivered(one, nowMs), days(0));
    expect((await memory.sweep(days(179), 10)).removed).toBe(0);
    await deliveries.replace(two, delivered(two, nowMs), days(0));
    expect((await memory.sweep(days(30) - 1, 10)).removed).toBe(0);
    expect((await memory.sweep(days(30) + 1, 10)).removed).toBe(1);
  });
});

describe('kept blocks', () => {
  /** Two blocks of 64, of which there is room for one. The second was read last. */
  async function twoBlocks() {
    const made = rig(mib);
    await made.deliveries.record(range(0, 63));
    await made.deliveries.record(range(64, 127));
    const { due } = await made.deliveries.pending(subscriptionId, 128, now);
    const [ofFirst, another] = due;
    const ofSecond = due[64];
    if (ofFirst === undefined || another === undefined || ofSecond === undefined) expect.unreachable();
    return { ...made, ofFirst, another, ofSecond };
  }
  const statusOf = async (deliveries: Deliveries, { delivery: { id } }: HeldDelivery) =>
    (await deliveries.get(unboundedWalk(), subscriptionId, id))?.status;

  test('serve changes without a read; a change of another block reads it, and is recorded', async () => {
    const { deliveries, reads, ofFirst, ofSecond, another } = await twoBlocks();
    expect(await deliveries.replace(ofSecond, delivered(ofSecond, nowMs), nowMs)).toBe(true);
    expect(reads).toEqual([]);
    expect(await deliveries.replace(ofFirst, delivered(ofFirst, nowMs), nowMs)).toBe(true);
    expect(reads).toEqual([ofFirst.blockId]);
    // It is kept since.
    expect(await deliveries.replace(another, delivered(another, nowMs), nowMs)).toBe(true);
    expect(reads).toHaveLength(1);
    for (const one of [ofFirst, ofSecond, another]) expect(await statusOf(deliveries, one)).toBe('DELIVERED');
  });

  test('and read ones do not undo what another node writes meanwhile', async () => {
    const { deliveries, other, store, ofFirst, another, ofSecond } = await twoBlocks();
    // The second block is kept as it was before this.
    expect(await other.replace(ofSecond, delivered(ofSecond, nowMs), nowMs)).toBe(true);
    expect(await deliveries.replace(ofSecond, retried(ofSecond, nowMs), nowMs)).toBe(false);
    store.afterRead = () => other.replace(another, delivered(another, nowMs), nowMs);
    expect(await deliveries.replace(ofFirst, delivered(ofFirst, nowMs), nowMs)).toBe(true);
    store.afterRead = null;
    for (const one of [ofFirst, ofSecond, another]) expect(await statusOf(deliveries, one)).toBe('DELIVERED');
  });

  test('count in the memory budget while one of their deliveries is PENDING', async () => {
    const { deliveries, budget } = rig();
    await deliveries.record(range(0, 1));
    const [one, two] = (await deliveries.pending(subscriptionId, 64, now)).due;
    if (one === undefined || two === undefined) expect.unreachable();
    await deliveries.replace(one, delivered(one, nowMs), nowMs);
    expect(budget.heldBytes('queue')).toBeGreaterThan(1_000);
    await deliveries.replace(two, delivered(two, nowMs), nowMs);
    expect(budget.heldBytes('queue')).toBe(0);
  });
});

describe('what is due', () => {
  test('new ones of a ledger in its order, before retries that wait, however many these are', async () => {
    const { deliveries } = rig();
    await deliveries.record(range(0, 639));
    for (let at = 0; at < 10; at++) {
      const { due } = await deliveries.pending(subscriptionId, 64, now);
      await Promise.all(due.map((one) => deliveries.replace(one, retried(one, startMs + 2 * minuteMs + at), startMs)));
    }
    expect(await deliveries.pending(subscriptionId, 32, now)).toEqual({ due: [], next: recordedAt(2 * minuteMs) });
    await deliveries.record(range(640, 700));
    const { due, next } = await deliveries.pending(subscriptionId, 32, now);
    expect(seqs(due.map(({ delivery: of }) => of))).toEqual(upTo(32).map((at) => 640 + at));
    expect(next).not.toBeNull();
    expect((next ?? '') <= recordedAt(2 * minuteMs)).toBe(true);
    const later = await deliveries.pending(subscriptionId, 1_000, recordedAt(3 * minuteMs));
    expect(later.due).toHaveLength(701);
  });

  test('of a block in part, with the rest when its time has come', async () => {
    const { deliveries } = rig();
    await deliveries.record(range(0, 3));
    const one = await firstDue(deliveries);
    await deliveries.replace(one, retried(one, startMs + 2 * minuteMs), startMs);
    const found = await deliveries.pending(subscriptionId, 64, now);
    expect(seqs(found.due.map(({ delivery: of }) => of))).toEqual([1, 2, 3]);
    expect(found.next).toBe(recordedAt(2 * minuteMs));
    expect((await deliveries.pending(subscriptionId, 64, recordedAt(2 * minuteMs))).due).toHaveLength(4);
  });
});

describe('reading', () => {
  const asked = (at: number): DeliveryRecord => ({
    ...delivery(at),
    id: deliveryIdOf(subscriptionId, { id: `asked-${at}`, createdAt: recordedAt(at) }),
    origin: 'owner',
    createdAt: recordedAt(10_000 + at * 100),
  });

  test('pages of any size, from any offset, in both directions, are parts of one list', async () => {
    const { deliveries } = rig();
    for (let at = 0; at < 12; at++) {
      const ledgerId = at % 2 === 0 ? ledgerA : ledgerB;
      await deliveries.record(range(at * 20, at * 20 + 16, { ledgerId, createdMs: 10_000 + at * 150 }));
      await deliveries.create(asked(at));
    }
    const all = await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1_000 });
    expect(all).toHaveLength(12 * 18);
    const times = all.map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted());
    for (const descending of [false, true]) {
      const list = descending ? all.toReversed() : all;
      for (const [limit, offset] of [
        [1, 0],
        [7, 13],
        [40, 170],
        [300, 200],
        [20, 216],
        [1_000, 0],
      ] as const) {
        expect(await deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit, offset, descending })).toEqual(
          list.slice(offset, offset + limit),
        );
      }
    }
  });

  test('finds a delivery by its id, in any block or none, and never one of another subscription', async () => {
    const { deliveries } = rig();
    await deliveries.record(range(0, 300));
    await deliveries.record(range(0, 300, { ledgerId: ledgerB, everyMs: 7_000 }));
    for (const one of [delivery(0), delivery(150), delivery(300), delivery(299, { ledgerId: ledgerB, everyMs: 7_000 })])
      expect(await deliveries.get(unboundedWalk(), subscriptionId, one.id)).toEqual(one);
    expect(await deliveries.get(unboundedWalk(), subscriptionId, delivery(301).id)).toBeNull();
    expect(await deliveries.get(unboundedWalk(), ledgerA, delivery(0).id)).toBeNull();
    expect(await deliveries.get(unboundedWalk(), subscriptionId, 'c7f0e7a2-0000-4000-8000-000000000000')).toBeNull();
  });

  describe('of many records', () => {
    const many = 300;
    const unknown = deliveryIdOf(subscriptionId, { id: 'nowhere', createdAt: recordedAt(0) });

    /** Deliveries in a record each. `reads`: how often the event loop had run when each page was read. */
    async function manyBlocks() {
      const memory = new MemoryRecordStore();
      const reads: number[] = [];
      let runs = 0;
      let onFind = () => {};
      const store = beforeCalls(memory, {
        find: (kind) => {
          if (kind === blockKind) reads.push(runs);
          onFind();
        },
      });
      const deliveries = deliveriesIn(store, new MemoryBudget(0));
      for (let at = 0; at < many; at++) await deliveries.record(range(at, at, { createdMs: 10_000 + at }));
      const count = () => {
        runs += 1;
        immediate = setImmediate(count);
      };
      let immediate = setImmediate(count);
      return {
        deliveries,
        reads,
        beforeFind: (happens: () => void) => {
          onFind = happens;
        },
        [Symbol.dispose]: () => {
          clearImmediate(immediate);
        },
      };
    }

    test.each([
      [
        'a list from far on',
        (of: Deliveries) => of.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1, offset: many - 1 }),
      ],
      ['an id that is not there', (of: Deliveries) => of.get(unboundedWalk(), subscriptionId, unknown)],
    ])('%s takes few pages, and other work runs between two of them', async (_what, read) => {
      using rig = await manyBlocks();
      const found = await read(rig.deliveries);
      expect(found).toEqual(found === null ? null : [expect.objectContaining({ id: delivery(many - 1).id })]);
      expect(rig.reads.length).toBeLessThan(9);
      expect(rig.reads.length).toBeGreaterThan(4);
      expect(new Set(rig.reads).size).toBe(rig.reads.length);
    });

    test.each([
      ['a list', (of: Deliveries, walk: Walk) => of.ofSubscription(walk, subscriptionId, { limit: 1_000 })],
      ['a look for an id', (of: Deliveries, walk: Walk) => of.get(walk, subscriptionId, unknown)],
    ])('%s ends with its call', async (_what, read) => {
      using rig = await manyBlocks();
      const call = new AbortController();
      rig.beforeFind(() => call.abort());
      await expect(read(rig.deliveries, unboundedWalk(call.signal))).rejects.toMatchObject({ code: 'unavailable' });
      expect(rig.reads).toHaveLength(1);
    });
  });
});
