import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import { uuidV7 } from '../../../src/domain/values/uuid.ts';
import type { SubscriptionRecord } from '../../../src/service/webhooks/subscription-record.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { SubscriptionIndex } from '../../../src/webhooks/tail/subscription-index.ts';
import { heldBytes } from '../../support/held-bytes.ts';

const [one, other] = ['0199aaaa-0000-7000-8000-000000000001', '0199aaaa-0000-7000-8000-000000000002'];

/** An index of a subscription to all ledgers for each owner, named after it. */
function indexOf(...owners: string[]) {
  const index = new SubscriptionIndex({} as LedgerStore, () => {});
  for (const actorId of owners) index.add({ id: `of ${actorId}`, actorId, ledgerId: null } as SubscriptionRecord);
  const learn = (ledgerId: string, actorId: string) =>
    index.learn(ledgerId, [{ projections: [{ kind: 'line', list: names.ledgersOf(actorId), order: '', value: '' }] }]);
  return { index, learn };
}

describe('the ledgers of owners', () => {
  test('are watched by each owner, until its last subscription ends', () => {
    const { index, learn } = indexOf(one, other);
    for (const owner of [one, other]) learn('shared', owner);
    learn('own', one);
    expect([...index.watchersOf('shared')]).toEqual([one, other]);
    expect([...index.watchersOf('own')]).toEqual([one]);
    expect(index.watchedCount).toBe(2);
    expect(index.remove(`of ${one}`)).toEqual(['own']);
    expect([[...index.watchersOf('shared')], [...index.watchersOf('own')]]).toEqual([[other], []]);
    expect(index.watchedCount).toBe(1);
    expect(index.remove(`of ${other}`)).toEqual(['shared']);
    expect(index.watchedCount).toBe(0);
  });

  test('take 140 bytes each if no other owner watches them, and none once the owner has no subscription', async () => {
    const { index, learn } = indexOf(one);
    const count = 100_000;
    const before = await heldBytes();
    for (let at = 0; at < count; at += 1) learn(uuidV7(at, randomBytes(10)), one);
    expect(index.watchedCount).toBe(count);
    expect(((await heldBytes()) - before) / count).toBeLessThan(250);
    index.remove(`of ${one}`);
    expect(((await heldBytes()) - before) / count).toBeLessThan(20);
  });

  test('take as little again once only one of several owners is left', async () => {
    const { index, learn } = indexOf(one, other);
    const count = 30_000;
    const before = await heldBytes();
    for (let at = 0; at < count; at += 1) {
      const ledgerId = uuidV7(at, randomBytes(10));
      for (const owner of [one, other]) learn(ledgerId, owner);
    }
    expect(index.remove(`of ${one}`)).toEqual([]);
    expect(index.watchedCount).toBe(count);
    expect(((await heldBytes()) - before) / count).toBeLessThan(250);
  });

  test('are learned in the same time, however many owners watch them already', () => {
    const owners = Array.from({ length: 2_000 }, (_, at) => uuidV7(at, randomBytes(10)));
    const { learn } = indexOf(...owners);
    const before = process.cpuUsage();
    for (const owner of owners) for (let at = 0; at < 100; at += 1) learn(`shared ${at}`, owner);
    // A copy of the set for each further owner took several seconds.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_500);
  });
});
