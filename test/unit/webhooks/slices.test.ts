import { expect, test } from 'vitest';
import { append, buyer, supplier } from '../../support/commands.ts';
import { webhookOrder } from '../../support/webhook-order.ts';
import type { WebhookRig, WebhookRigOptions } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

const many = 300;

/** Counts what happens in each turn of the event loop. */
function perTurn() {
  const turns = { most: 0, now: 0 };
  return {
    turns,
    count: () => {
      if (turns.now === 0)
        setImmediate(() => {
          turns.now = 0;
        });
      turns.now += 1;
      turns.most = Math.max(turns.most, turns.now);
    },
  };
}

async function manySubscribed(options: WebhookRigOptions): Promise<WebhookRig> {
  const world = await webhookOrder(options);
  for (let at = 0; at < many; at++) await world.subscribe(supplier, { url: `https://hook${at}.example/` });
  await world.quiet();
  return world;
}

test('an event for hundreds of subscriptions is recorded in slices, between which other work comes', async () => {
  const { turns, count } = perTurn();
  const isBlock = ({ kind, replaces }: { readonly kind: string; readonly replaces: string }) =>
    kind === 'webhook_deliveries' && replaces === 'absent';
  let blocks = 0;
  const world = await manySubscribed({
    wrapRecords: (inner) =>
      beforeCalls(inner, {
        put: async (write) => {
          if (!isBlock(write)) return;
          blocks += 1;
          count();
        },
      }),
  });
  await world.runToEnd(append());
  expect([blocks, world.posts.length]).toEqual([many, many]);
  expect(turns.most).toBeLessThanOrEqual(20);
});

test('the subscriptions of one owner are read some at a time, and other owners are served in between', async () => {
  const { turns, count } = perTurn();
  const looked: string[] = [];
  const world = await manySubscribed({
    wrapRecords: (inner) =>
      beforeCalls(inner, {
        find: async (kind, lookup) => {
          if (kind !== 'webhook_deliveries_slot') return;
          count();
          looked.push(lookup.value);
        },
      }),
  });
  const { id } = await world.subscribe(buyer, { url: 'https://other.example/' });
  await world.quiet();
  looked.length = 0;
  turns.most = 0;
  world.webhooks.lookForDue();
  await world.quiet();
  expect(new Set(looked).size).toBe(many + 1);
  expect(looked.indexOf(id)).toBeLessThan(16);
  expect(turns.most).toBeLessThanOrEqual(8);
});

test('an event that comes while many subscriptions wait to be looked at reaches each of them once', async () => {
  const world = await manySubscribed({});
  world.webhooks.lookForDue();
  await world.run(append());
  world.webhooks.lookForDue();
  await world.runToEnd(append());
  expect(world.posts).toHaveLength(2 * many);
  expect(new Set(world.posts.map(({ url, event }) => `${url} ${event.seq}`)).size).toBe(2 * many);
});
