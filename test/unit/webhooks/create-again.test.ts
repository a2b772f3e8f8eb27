import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { seededEntropy } from '../../../src/service/calls/entropy.ts';
import { unboundedWalk } from '../../../src/service/walking/walk.ts';
import { subscriptionsIn } from '../../../src/service/webhooks/subscription-record.ts';
import { append, buyer, delegate, grant, ledgerId, revoke, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { hookUrl, webhookOrder } from '../../support/webhook-order.ts';
import type { WebhookRig } from '../../support/webhook-rig.ts';
import { recordsWith } from '../../support/world.ts';

/** A creation with its Idempotency-Key: each run takes the same ids and bytes, at the time of the first. */
function creation(world: WebhookRig, actorId: string, ofLedger?: string) {
  const nowMs = world.clock.now();
  const request = { $typeName: 'svc.v1.CreateWebhookRequest', url: hookUrl, eventTypes: [] as string[] } as const;
  return () =>
    world.api.createWebhook(ofLedger === undefined ? request : { ...request, ledgerId: ofLedger }, {
      ...world.call(actorId),
      ...seededEntropy(Buffer.alloc(32, 7), nowMs),
      now: nowMs,
    });
}

/** Records whose next write of a kind lands without an answer. The actor seems to have so many more subscriptions. */
function records(others = 0) {
  const memory = new MemoryRecordStore();
  const failing = new Set<string>();
  return {
    failing,
    records: recordsWith(memory, {
      put: async (write) => {
        const put = await memory.put(write);
        if (failing.delete(write.kind)) throw new LedgerError('outcome_unknown', 'The store does not answer.');
        return put;
      },
      find: (kind, lookup, page) =>
        lookup.name === 'in_force_of'
          ? memory.find(kind, lookup, { ...page, offset: (page.offset ?? 0) - others })
          : memory.find(kind, lookup, page),
    }),
  };
}

describe('a creation that is run again after it made the subscription and failed', () => {
  test('answers the same id and secret, though the actor has a thousand with this one', async () => {
    const { records: store, failing } = records(999);
    const world = await webhookOrder({ records: store });
    const create = creation(world, supplier);
    failing.add('webhook_subscription');
    await expect(create()).rejects.toMatchObject({ code: 'outcome_unknown' });
    const again = await create();
    expect(again).toMatchObject({ url: hookUrl, active: true, secret: expect.stringMatching(/^whsec_/) });
    expect(await create()).toEqual(again);
    expect((await subscriptionsIn(store).ofActor(unboundedWalk(), supplier, { limit: 9 })).map(({ id }) => id)).toEqual(
      [again.id],
    );
    await expect(world.subscribe(supplier)).rejects.toMatchObject({ details: { limit: 1_000 } });
    await world.runToEnd(append());
    expect(world.posts).toHaveLength(1);
  });

  test('succeeds though its owner may not read the ledger any more, so that a new one would be refused', async () => {
    const { records: store, failing } = records();
    const world = await webhookOrder({ records: store });
    await world.run(grant({ access: 'read' }));
    const create = creation(world, delegate, ledgerId);
    failing.add('webhook_changes');
    await expect(create()).rejects.toMatchObject({ code: 'outcome_unknown' });
    await world.run(revoke());
    const again = await create();
    expect(again).toMatchObject({ ledgerId, active: true });
    expect((await store.get('webhook_subscription', again.id))?.value).toContain(delegate);
    await expect(world.subscribe(delegate, { ledgerId })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('gets the events from its first run on', async () => {
    const { records: store, failing } = records();
    const world = await webhookOrder({ records: store });
    const create = creation(world, buyer, ledgerId);
    failing.add('webhook_changes');
    await expect(create()).rejects.toMatchObject({ code: 'outcome_unknown' });
    await world.run(append());
    await create();
    await world.quiet();
    expect(world.posts.map(({ event }) => event.seq)).toEqual([3]);
  });
});
