import { describe, expect, test } from 'vitest';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { charsOf, pageCharsMax } from '../../../src/store/pages.ts';
import type { RecordStore, RecordWrite } from '../../../src/store/record-store.ts';
import { settled } from '../../support/clock.ts';
import {
  append,
  buyer,
  createMaster,
  ledgerId,
  masterId,
  openLedger,
  orderFacts,
  supplier,
} from '../../support/commands.ts';
import { faultyLedgerStore, faultyRecordStore, scriptedFaults } from '../../support/store-faults.ts';
import { webhookOrder } from '../../support/webhook-order.ts';
import { typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, recordsWith, storeWith } from '../../support/world.ts';

const seqsOf = (world: WebhookRig) => world.posts.map(({ event }) => event.seq);
const cursor = (world: WebhookRig, id = ledgerId) => world.records.get('webhook_cursor', id);

/** Records that call this before each write of a cursor. */
function beforeCursors(
  happens: (write: RecordWrite, inner: RecordStore) => unknown,
): (inner: RecordStore) => RecordStore {
  return (inner) =>
    beforeCalls(inner, {
      put: async (write) => {
        if (write.kind === 'webhook_cursor') await happens(write, inner);
      },
    });
}

/** Records whose cursors cannot be written while `isFailing`. The write fails after sending has begun. */
function failingCursors() {
  const state = {
    isFailing: false,
    wrap: beforeCursors(async () => {
      for (let time = 0; state.isFailing && time < 5; time++) await settled();
      if (state.isFailing) throw new Error('the disk is full');
    }),
  };
  return state;
}

describe('cursors', () => {
  test('a ledger without a subscription has no cursor', async () => {
    const world = await webhookOrder();
    await world.runToEnd(append());
    expect(await cursor(world)).toBeNull();
  });

  test('a cursor is removed when the last subscription to its ledger has ended', async () => {
    const world = await webhookOrder();
    const { id } = await world.subscribe(supplier);
    await world.runToEnd(append());
    expect(JSON.parse((await cursor(world))?.value ?? '{}')).toEqual({ next_seq: 4 });
    await world.unsubscribe(supplier, id);
    await world.quiet();
    expect(await cursor(world)).toBeNull();
  });

  test('if another node has stored the cursor first, the ledger is tailed from there at once', async () => {
    let races = 0;
    const world = await webhookOrder({
      wrapRecords: beforeCursors(async (write, inner) => {
        if (write.replaces !== 'absent') return;
        races += 1;
        await inner.put(write);
      }),
    });
    await world.subscribe(supplier);
    await world.runToEnd(append({ eventType: 'ONLY_ONE' }));
    expect([races, typesSent(world)]).toEqual([1, ['ONLY_ONE']]);
  });

  test('an old cursor does not bring back the events in between', async () => {
    const world = await webhookOrder();
    await world.records.put({
      kind: 'webhook_cursor',
      id: ledgerId,
      replaces: 'absent',
      value: '{"next_seq":0}',
      lookups: [],
    });
    await Promise.all(Array.from({ length: 600 }, () => world.run(append({ eventType: 'OLD' }))));
    await world.clock.advance(60_000);
    let reads = 0;
    const again = webhookRig({
      rig: world.rig,
      records: world.records,
      wrapLedgers: (inner) =>
        beforeCalls(inner, {
          read: (_id, _from, limit) => {
            reads += limit;
          },
        }),
    });
    await again.subscribe(supplier);
    await again.runToEnd(append({ eventType: 'NEW' }));
    expect(typesSent(again)).toEqual(['NEW']);
    expect(reads).toBeLessThan(300);
  });
});

describe('crashes', () => {
  test('events written while the log was not tailed are delivered after the start', async () => {
    const world = await webhookOrder();
    await world.subscribe(supplier);
    await world.quiet();
    world.kill();
    const unseen = world.rig.directory();
    for (const eventType of ['ONE', 'TWO']) await unseen.submit(append({ eventType }));
    const next = await world.resumed();
    expect(typesSent(next)).toEqual(['ONE', 'TWO']);
  });

  test('after a kill at any write no event is missed, and none recorded as delivered is sent again', async () => {
    for (let writes = 0; writes < 40; writes++) {
      let left = writes;
      const first = webhookRig({
        wrapRecords: (inner) =>
          recordsWith(inner, {
            put: (write) => {
              left -= 1;
              if (left < 0) first.kill();
              return left < 0 ? new Promise(() => {}) : inner.put(write);
            },
          }),
      });
      await first.run(openLedger(), createMaster());
      await first.subscribe(supplier, { url: 'https://one.example/' });
      const { id } = await first.subscribe(buyer, { url: 'https://two.example/' });
      await Promise.all(Array.from({ length: 8 }, () => first.run(append())));
      await first.quiet();
      first.kill();
      const recorded = (await first.deliveries(buyer, id)).deliveries.filter(({ status }) => status === 'DELIVERED');
      const next = await first.resumed();
      for (const host of ['one', 'two']) {
        const seqs = [...first.posts, ...next.posts]
          .filter(({ url }) => url.includes(host))
          .map((post) => post.event.seq);
        expect(new Set(seqs), `after ${writes} writes`).toEqual(new Set([3, 4, 5, 6, 7, 8, 9, 10]));
      }
      const again = next.posts.filter(({ url }) => url.includes('two')).map(({ event }) => event.seq ?? 0);
      expect(again, `after ${writes} writes`).toEqual(again.toSorted((a, b) => a - b));
      const ids = new Set(next.posts.filter(({ url }) => url.includes('two')).map(({ event }) => event.id));
      expect(recorded.filter(({ eventId }) => ids.has(eventId))).toEqual([]);
      const { deliveries } = await next.deliveries(buyer, id);
      expect(deliveries.map(({ status }) => status)).toEqual(Array(8).fill('DELIVERED'));
    }
  });

  test('if a cursor could not be moved, sent events are not sent again, also with fewer subscriptions', async () => {
    const failing = failingCursors();
    const world = await webhookOrder({ wrapRecords: failing.wrap });
    const ids: string[] = [];
    for (let at = 0; at < 100; at++) {
      ids.push((await world.subscribe(supplier, { url: `https://hook${at}.example/` })).id);
    }
    await world.runToEnd(append());
    failing.isFailing = true;
    await Promise.all(Array.from({ length: 64 }, () => world.run(append())));
    await world.quiet();
    expect(world.posts).toHaveLength(100 * 65);
    for (const id of ids.slice(0, 20)) {
      await world.unsubscribe(supplier, id);
    }
    failing.isFailing = false;
    await world.advance(1_000);
    expect(JSON.parse((await cursor(world))?.value ?? '{}')).toEqual({ next_seq: 68 });
    expect(world.posts).toHaveLength(100 * 65);
  });

  test('with a cursor far behind, sent events are not sent again, also without the oldest subscription', async () => {
    const first = await webhookOrder();
    const { id: oldest } = await first.subscribe(buyer, { url: 'https://oldest.example/' });
    await first.runToEnd(append());
    first.kill();
    const unseen = first.rig.directory();
    for (let at = 0; at < 30; at++) await unseen.submit(append());
    await first.clock.advance(60_000);
    await first.subscribe(supplier, { url: 'https://newer.example/' });
    for (let at = 0; at < 300; at++) await unseen.submit(append({ eventType: 'NEW' }));
    const failing = failingCursors();
    failing.isFailing = true;
    const second = await first.resumed({ wrapRecords: failing.wrap });
    expect(typesSent(second)).toContain('NEW');
    second.kill();
    await first.unsubscribe(buyer, oldest);
    const third = await second.resumed();
    const newer = [...second.posts, ...third.posts].filter(({ url }) => url.includes('newer'));
    expect(newer.map(({ event }) => event.seq)).toEqual(Array.from({ length: 300 }, (_, at) => at + 34));
  });

  test('failures of the store delay events and lose none', async () => {
    const faults = scriptedFaults();
    const world = webhookRig({
      wrapRecords: (inner) => faultyRecordStore(inner, faults.choose),
      wrapLedgers: (inner) => faultyLedgerStore(inner, faults.choose),
    });
    await world.run(openLedger(), createMaster());
    const { id } = await world.subscribe(supplier);
    faults.fail('record-write', 'unavailable', 'applied', 'unavailable', 'applied');
    faults.fail('record-read', 'unavailable', 'unavailable');
    faults.fail('read', 'unavailable', 'unavailable', 'unavailable');
    await Promise.all(Array.from({ length: 20 }, () => world.run(append())));
    for (let second = 0; second < 20; second++) {
      await world.quiet();
      await world.clock.advance(1_000);
    }
    expect(new Set(seqsOf(world))).toEqual(new Set(Array.from({ length: 20 }, (_, at) => at + 3)));
    const { deliveries } = await world.deliveries(supplier, id);
    expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['DELIVERED']));
  });
});

test('large events are read a few at a time, and each of them is delivered', async () => {
  const world = await webhookOrder();
  await world.subscribe(supplier);
  const payload = JSON.stringify({ text: 'x'.repeat(128 * 1024) });
  const types = Array.from({ length: 40 }, (_, index) => `TYPE_${index}`);
  world.kill();
  const unseen = world.rig.directory();
  for (const eventType of types) await unseen.submit(append({ eventType, payload }));
  const pages: number[] = [];
  const { memory } = world.rig;
  const ledgers = storeWith(memory, {
    read: async (...asked) => {
      const page = await memory.read(...asked);
      pages.push(charsOf(page));
      return page;
    },
  });
  expect(typesSent(await world.resumed({ ledgers }))).toEqual(types);
  expect(Math.max(...pages)).toBeLessThan(pageCharsMax + payload.length + 2_048);
  expect(Math.max(...pages)).toBeGreaterThan(payload.length);
});

describe('damaged stored events', () => {
  const damaging = (change: (row: string) => string) => (inner: LedgerStore) =>
    storeWith(inner, {
      read: async (id, from, limit) =>
        (await inner.read(id, from, limit)).map((entry) =>
          entry.seq === 3 ? { ...entry, row: change(entry.row) } : entry,
        ),
    });

  test('an event whose stored payload was changed is not sent', async () => {
    const world = webhookRig({ wrapLedgers: damaging((row) => row.replace('"amount":1', '"amount":2')) });
    await world.run(openLedger(), createMaster());
    const { id } = await world.subscribe(supplier);
    await world.runToEnd(append({ payload: '{"amount":1}' }), append({ eventType: 'NEXT' }));
    expect(typesSent(world)).toEqual(['NEXT']);
    const [first] = (await world.deliveries(supplier, id)).deliveries;
    expect(first).toMatchObject({ status: 'FAILED', lastError: 'The stored event is damaged, so it is not sent.' });
  });

  test('a row that cannot be parsed does not stop the events behind it', async () => {
    const world = webhookRig({ wrapLedgers: damaging((row) => row.slice(0, 20)) });
    await world.run(openLedger({ facts: orderFacts }), createMaster({ masterId }));
    await world.subscribe(supplier);
    await world.runToEnd(append(), append({ eventType: 'NEXT' }));
    expect(typesSent(world)).toEqual(['NEXT']);
    expect(world.logged.join()).toContain('cannot be read');
  });
});
