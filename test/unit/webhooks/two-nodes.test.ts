import { expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { type RecordStore, writeUnknown } from '../../../src/store/record-store.ts';
import { append, createMaster, ledgerId, openLedger, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { heldReceiver, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, recordsWith } from '../../support/world.ts';

const url = 'https://hooks.example/a';

interface TwoNodes {
  /** Takes the API's calls, and has no shards at first. */
  readonly first: WebhookRig;
  /** Has the ledger's shard. */
  readonly second: WebhookRig;
  readonly own: { first: Set<string>; second: Set<string> };
  /** Messages between the nodes. */
  readonly messages: string[];
}

/**
 * Two nodes on one store. `hears`: messages between them arrive, at once. `wrapSecond` changes the store that the
 * second node's webhooks see.
 */
async function twoNodes({
  hears,
  records = new MemoryRecordStore(),
  wrapSecond = (inner) => inner,
}: {
  readonly hears: boolean;
  readonly records?: RecordStore;
  readonly wrapSecond?: (inner: RecordStore) => RecordStore;
}): Promise<TwoNodes> {
  const own = { first: new Set<string>(), second: new Set([ledgerId]) };
  const messages: string[] = [];
  const nodes: WebhookRig[] = [];
  const tellOthers = (id: string) => {
    messages.push(id);
    if (hears) for (const { webhooks } of nodes) webhooks.heard(id);
  };
  const first = webhookRig({ ownsShardOf: (id) => own.first.has(id), tellOthers, records });
  const second = first.restarted({ ownsShardOf: (id) => own.second.has(id), tellOthers, wrapRecords: wrapSecond });
  nodes.push(first, second);
  second.webhooks.start();
  await second.runToEnd(openLedger(), createMaster());
  // The newest commit of a ledger that another node writes is delivered if it may be later than the subscription.
  first.clock.jump(20_000);
  return { first, second, own, messages };
}

/** A subscription to the ledger that the first node creates and sends for, and the second node knows. */
async function subscribeAtFirst({ first, second, own }: TwoNodes): Promise<void> {
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.first.add(id);
  await second.webhooks.catchUp();
}

async function quiet({ first, second }: TwoNodes): Promise<void> {
  await first.quiet();
  await second.quiet();
}

test('an event answered after a subscription was created on another node is recorded and sent', async () => {
  const nodes = await twoNodes({ hears: true });
  const { first, second, own, messages } = nodes;
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.first.add(id);
  // The ledger is tailed already for another subscription: only the store shows that there is one more.
  await second.subscribe(supplier, { url: 'https://hooks.example/b', ledgerId });
  await second.run(append());
  await quiet(nodes);
  expect(first.posts.map(({ url: to, event }) => [to, event.seq])).toEqual([[url, 3]]);
  expect(messages).toContain(id);
  expect(second.posts).toEqual([]);
});

test('a ledger without a subscription before is tailed from the subscription on after the next check', async () => {
  const nodes = await twoNodes({ hears: true });
  const { first, second, own } = nodes;
  const { id } = await first.subscribe(supplier, { url });
  own.first.add(id);
  await second.run(append(), append());
  await quiet(nodes);
  expect(first.posts).toEqual([]);
  await second.webhooks.catchUp();
  await quiet(nodes);
  expect(first.posts.map(({ event }) => event.seq)).toEqual([3, 4]);
});

test('a message about a subscription that is not known yet takes effect as soon as it is known', async () => {
  const nodes = await twoNodes({ hears: true });
  const { first, second, own, messages } = nodes;
  const { id } = await second.subscribe(supplier, { url, ledgerId });
  own.first.add(id);
  await second.run(append());
  await quiet(nodes);
  expect(messages).toContain(id);
  expect(first.posts).toEqual([]);
  await first.webhooks.catchUp();
  await quiet(nodes);
  expect(first.posts.map(({ event }) => event.seq)).toEqual([3]);
});

test('the last event of a burst is sent at once, however late the write of the cursor lands', async () => {
  let held: PromiseWithResolvers<void> | null = null;
  const nodes = await twoNodes({
    hears: true,
    wrapSecond: (inner) =>
      beforeCalls(inner, {
        put: async (write) => {
          if (write.kind === 'webhook_cursor') await held?.promise;
        },
      }),
  });
  const { first, second, own } = nodes;
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.first.add(id);
  const ofSecond = await second.subscribe(supplier, { url: 'https://hooks.example/b', ledgerId });
  own.second.add(ofSecond.id);
  await second.webhooks.catchUp();
  await second.run(append());
  await quiet(nodes);
  expect(first.posts.map(({ event }) => event.seq)).toEqual([3]);
  held = Promise.withResolvers<void>();
  await second.run(append());
  await quiet(nodes);
  // The node that tails the ledger knows the new cursor before it is stored. Other nodes read it.
  expect([first.posts.length, second.posts.length]).toEqual([1, 2]);
  held.resolve();
  await quiet(nodes);
  expect(first.posts.map(({ event }) => event.seq)).toEqual([3, 4]);
});

test('the last event of a burst is sent at once too if the write of the cursor has an unknown outcome', async () => {
  let isInDoubt = false;
  const nodes = await twoNodes({
    hears: true,
    wrapSecond: (inner) =>
      recordsWith(inner, {
        put: async (write) => {
          const put = await inner.put(write);
          if (!isInDoubt || write.kind !== 'webhook_cursor') return put;
          isInDoubt = false;
          throw writeUnknown();
        },
      }),
  });
  const { first, second } = nodes;
  await subscribeAtFirst(nodes);
  await second.run(append());
  await quiet(nodes);
  isInDoubt = true;
  await second.run(append());
  await quiet(nodes);
  expect([isInDoubt, first.posts.map(({ event }) => event.seq)]).toEqual([false, [3, 4]]);
});

test('a delivery whose message was lost is found by the regular check', async () => {
  const nodes = await twoNodes({ hears: false });
  const { first, second } = nodes;
  await subscribeAtFirst(nodes);
  await second.run(append());
  await quiet(nodes);
  expect(first.posts).toEqual([]);
  first.webhooks.lookForDue();
  await quiet(nodes);
  expect(first.posts).toHaveLength(1);
});

test('a subscription that ended on another node is sent nothing after the next check', async () => {
  const nodes = await twoNodes({ hears: true });
  const { first, second, own } = nodes;
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.second.add(id);
  await second.webhooks.catchUp();
  await second.run(append());
  await quiet(nodes);
  expect(second.posts).toHaveLength(1);
  await first.unsubscribe(supplier, id);
  await second.webhooks.catchUp();
  await second.run(append());
  await quiet(nodes);
  expect(second.posts).toHaveLength(1);
  expect(second.webhooks.subscription(id)).toBeUndefined();
});

test('a subscription whose DELETE failed before it noted the change is sent nothing after the next check', async () => {
  const memory = new MemoryRecordStore();
  let isFailing = false;
  const records = recordsWith(memory, {
    put: async (write) => {
      if (!isFailing || write.kind !== 'webhook_changes') return memory.put(write);
      isFailing = false;
      throw new LedgerError('unavailable', 'The store does not answer.');
    },
  });
  const nodes = await twoNodes({ hears: true, records });
  const { first, second, own } = nodes;
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.second.add(id);
  await second.webhooks.catchUp();
  isFailing = true;
  const request = { $typeName: 'svc.v1.DeleteWebhookRequest', id } as const;
  const deleted = first.api.deleteWebhook(request, first.call(supplier));
  await expect(deleted).rejects.toMatchObject({ code: 'outcome_unknown' });
  await first.quiet();
  await second.webhooks.catchUp();
  await second.run(append());
  await quiet(nodes);
  expect(second.webhooks.subscription(id)).toBeUndefined();
  expect(second.posts).toEqual([]);
});

test('a node that has lost the subscription’s shard begins no attempt, even before giveUp', async () => {
  const nodes = await twoNodes({ hears: true });
  const { first, own } = nodes;
  const { id } = await first.subscribe(supplier, { url, ledgerId });
  own.first.add(id);
  const { receiver, waiting } = heldReceiver();
  first.receivers.set(url, receiver);
  await nodes.second.webhooks.catchUp();
  await nodes.second.run(append(), append(), append());
  await quiet(nodes);
  expect(first.posts).toHaveLength(1);
  own.first.delete(id);
  for (const answer of waiting.splice(0)) answer();
  await first.clock.advance(5_000);
  await quiet(nodes);
  expect(first.posts).toHaveLength(1);
  own.first.add(id);
  first.receivers.delete(url);
  first.webhooks.lookForDue();
  await quiet(nodes);
  expect(first.posts.map(({ event }) => event.seq)).toEqual([3, 4, 5]);
});
