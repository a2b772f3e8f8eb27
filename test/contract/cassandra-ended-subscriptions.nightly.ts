import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BackgroundLimiter } from '../../src/runtime/background-limiter.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { type SubscriptionRecord, subscriptionsIn } from '../../src/service/webhooks/subscription-record.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { CassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import { TooManyDeleted } from '../../src/store/record-store.ts';
import { KnownSubscriptions } from '../../src/webhooks/tail/known-subscriptions.ts';
import { SubscriptionIndex } from '../../src/webhooks/tail/subscription-index.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { supplier, uuid } from '../support/commands.ts';
import { MemoryLedgerStore } from '../support/memory-store/ledger-store.ts';
import { leaveKeyspace, makeKeyspace, newKeyspace, openStores, withClient } from './cassandra-factory.ts';

/** Cassandra's own default of tombstone_failure_threshold. */
const failureThreshold = 100_000;
const ended = 1.5 * failureThreshold;
const firstMs = Date.UTC(2026, 10, 21);
const atOnce = 256;

await describeOnCassandra('More subscriptions that have ended than Cassandra reads over', (address) => {
  let settings: CassandraSettings;
  let stores: CassandraStores;

  beforeAll(async () => {
    settings = newKeyspace(address);
    await makeKeyspace(settings);
    stores = await openStores(settings, Date.now);
    const cql =
      "DELETE FROM record_lookup WHERE kind = 'webhook_subscription' AND name = 'in_force' AND value = 'all' " +
      'AND line_order = ? AND id = ? AND put_token = ?';
    await withClient(settings, async (client) => {
      for (let at = 0; at < ended; at += atOnce) {
        const deletions = Array.from({ length: atOnce }, (_, more) => {
          const { createdAt, id } = subscriptionOf(1 + at + more);
          return client.execute(cql, [`${createdAt}|${id}`, id, 'token'], { prepare: true });
        });
        await Promise.all(deletions);
      }
    });
  }, 300_000);
  afterAll(async () => {
    await stores[Symbol.asyncDispose]();
    await leaveKeyspace(settings);
  });

  test('hide none that is active', async () => {
    const subscriptions = subscriptionsIn(stores.records);
    const live = [subscriptionOf(0), subscriptionOf(ended / 2), subscriptionOf(2 * ended)];
    for (const one of live) await subscriptions.create(one);
    await expect(subscriptions.inForce({ limit: 500 })).rejects.toBeInstanceOf(TooManyDeleted);
    const index = new SubscriptionIndex(new MemoryLedgerStore(Date.now), () => {});
    const known = new KnownSubscriptions({
      subscriptions,
      index,
      limiter: { take: async () => {} } as unknown as BackgroundLimiter,
      clock: systemClock,
      isShared: true,
      isStopped: () => false,
      retryUntilStopped: (_, work) => work(),
      added: () => {},
      ended: () => {},
    });
    await known.find();
    for (const { id } of live) expect(index.get(id)?.id).toBe(id);
  }, 60_000);
});

/** One each 100 ms. */
function subscriptionOf(at: number): SubscriptionRecord {
  return {
    ...{ id: uuid(100 + at), actorId: supplier, url: 'https://hooks.example/', eventTypes: [], ledgerId: uuid(9) },
    ...{ createdAt: new Date(firstMs + 100 * at).toISOString(), sealedSecret: 's', endedAt: null, endedBy: null },
  };
}
