import { describe, expect, test } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import type { SubscriptionRecord } from '../../../src/service/webhooks/subscription-record.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { SubscriptionIndex } from '../../../src/webhooks/tail/subscription-index.ts';
import {
  append,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { typesSent, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, rig } from '../../support/world.ts';

const url = 'https://delegate.example/';
const otherId = uuid(0x2);

/** A node that tails the ledger, and another node without shards. `lists`: whose ledgers the other node has read. */
async function twoNodes() {
  const own = { first: true, second: false };
  const lists: string[] = [];
  const first = webhookRig({ ownsShardOf: () => own.first, tellOthers: () => {} });
  const second = first.restarted({
    ownsShardOf: () => own.second,
    tellOthers: () => {},
    wrapLedgers: (inner) =>
      beforeCalls(inner, {
        lines: (list) => lists.push(list),
      }),
  });
  await first.subscribe(delegate, { url });
  await first.run(openLedger(), createMaster());
  second.webhooks.start();
  await second.quiet();
  const takeOver = (isNew: (id: string) => boolean = () => true) => {
    own.first = false;
    return second.webhooks.takeOver(isNew, () => {
      own.second = true;
    });
  };
  return { first, second, lists, takeOver };
}

const letIn = () => grant({ access: 'read', masterId, linkId: uuid(0x77) });

describe('a node that takes a shard over', () => {
  for (const isWatched of [true, false]) {
    const by = isWatched ? 'with another subscription' : 'without another subscription';
    test(`delivers to an actor that another node granted access meanwhile, of a ledger ${by}`, async () => {
      const { first, second, takeOver } = await twoNodes();
      if (isWatched) await first.subscribe(supplier, { url: 'https://supplier.example/' });
      await second.webhooks.catchUp();
      await first.runToEnd(letIn(), append({ eventType: 'ON_FIRST' }));
      first.kill();
      await first.run(append({ eventType: 'ANSWERED_BEFORE_KILL' }));
      await takeOver();
      await second.runToEnd(append({ eventType: 'BEFORE_THE_LISTS' }));
      await second.runToEnd(append({ eventType: 'ON_SECOND' }));
      expect(typesSent(first, url)).toContain('ON_FIRST');
      const rest = typesSent(second, url).filter((type) => type !== 'ON_FIRST' && !type.endsWith('_GRANTED'));
      expect(rest).toEqual(['ANSWERED_BEFORE_KILL', 'BEFORE_THE_LISTS', 'ON_SECOND']);
    });
  }

  test('reads each owner’s list once for all shards that come together', async () => {
    const { second, lists, takeOver } = await twoNodes();
    lists.length = 0;
    await Promise.all(Array.from({ length: 85 }, () => takeOver()));
    await second.quiet();
    expect(lists.filter((list) => list === names.ledgersOf(delegate)).length).toBeLessThanOrEqual(2);
    expect(lists.length).toBeGreaterThan(0);
  });
});

describe('a list in doubt', () => {
  const wide: SubscriptionRecord = {
    id: uuid(0x51),
    actorId: delegate,
    url,
    eventTypes: [],
    ledgerId: null,
    createdAt: '2026-01-01T00:00:00.000Z',
    sealedSecret: '',
    endedAt: null,
    endedBy: null,
  };
  const rest = async () => {};
  const listed = async (wrap: (inner: LedgerStore) => LedgerStore = (inner) => inner) => {
    const index = new SubscriptionIndex(wrap(rig().memory), () => {});
    index.add(wide);
    await index.list(delegate, rest);
    return index;
  };

  test('counts only for the ledgers in doubt, until it is read again', async () => {
    const index = await listed();
    index.doubt((id) => id === otherId);
    expect([index.of(ledgerId), index.of(otherId), index.isComplete]).toEqual([[], [wide], false]);
    await index.list(delegate, rest);
    expect([index.of(otherId), index.isComplete, index.nextDoubted()]).toEqual([[], true, undefined]);
  });

  test('stays in doubt if the doubt came up while it was read', async () => {
    let duringRead = () => {};
    const index = await listed((inner) =>
      beforeCalls(inner, {
        lines: () => {
          duringRead();
        },
      }),
    );
    duringRead = () => index.doubt((id) => id === otherId);
    await index.list(delegate, rest);
    expect([index.of(otherId), index.nextDoubted()]).toEqual([[wide], delegate]);
  });

  test('is not read again once the subscription has ended', async () => {
    const index = await listed();
    index.doubt(() => true);
    index.remove(wide.id);
    expect([index.nextDoubted(), index.isComplete]).toEqual([undefined, true]);
  });

  test('that cannot be read does not delay others', async () => {
    const index = await listed();
    index.add({ ...wide, id: uuid(0x52), actorId: supplier });
    index.doubt(() => true);
    expect([index.nextDoubted(), index.nextDoubted(), index.nextDoubted()]).toEqual([delegate, supplier, delegate]);
  });
});
