import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import { unboundedWalk } from '../../../src/service/walking/walk.ts';
import { blockKind } from '../../../src/service/webhooks/delivery-block.ts';
import { slotOf } from '../../../src/service/webhooks/delivery-record.ts';
import { movedMax } from '../../../src/service/webhooks/due-slots.ts';
import {
  type DeliveryRig,
  delivered,
  deliveriesAt,
  minuteMs,
  retried,
  subscriptionId,
} from '../../support/webhook-deliveries.ts';

const hourMs = 60 * minuteMs;
const slotKind = `${blockKind}_slot`;

const slotsOf = async ({ memory }: DeliveryRig) => {
  const found = await memory.find(slotKind, { name: 'subscription', value: subscriptionId }, { limit: 1_000 });
  return found.map(({ order }) => order);
};
const idsOf = (found: readonly { readonly delivery: { readonly id: string } }[]) =>
  found.map(({ delivery: { id } }) => id);

describe('slots of ten minutes', () => {
  test('finished deliveries are not read any more, however many they are', async () => {
    const rig = deliveriesAt();
    for (let hour = 0; hour < 24; hour++) {
      for (let minute = 0; minute < 60; minute += 5) {
        await rig.recordNow(2);
        await rig.sendAll(delivered);
        rig.clock.jump(5 * minuteMs);
      }
      expect((await slotsOf(rig)).length, `after ${hour} hours`).toBeLessThanOrEqual(3);
    }
    rig.finds.length = 0;
    expect(await rig.pending()).toEqual([]);
    expect(rig.finds.length).toBeLessThanOrEqual(6);
    rig.clock.jump(hourMs);
    await rig.pending();
    expect(await slotsOf(rig)).toEqual([]);
    expect((await rig.deliveries.ofSubscription(unboundedWalk(), subscriptionId, { limit: 1_000 })).length).toBe(
      24 * 24,
    );
  });

  test('a delivery that fails for three hours is retried at its times beside others that succeed', async () => {
    const rig = deliveriesAt();
    const [dead] = await rig.recordNow(1);
    await rig.sendAll((one, nowMs) => retried(one, nowMs + 2 * hourMs));
    for (let at = 0; at < 12; at++) {
      const made = await rig.recordNow(1);
      expect(idsOf(await rig.pending())).toEqual(made);
      await rig.sendAll(delivered);
      rig.clock.jump(10 * minuteMs);
    }
    expect(idsOf(await rig.pending())).toEqual([dead]);
    // Another process has none of this in memory.
    expect(idsOf(await rig.restarted().pending())).toEqual([dead]);
  });

  test('deliveries that have waited for months are found after a start, in their order', async () => {
    const rig = deliveriesAt();
    const made: string[] = [];
    for (let day = 0; day < 40; day++) {
      made.push(...(await rig.recordNow(1)));
      rig.clock.jump(24 * hourMs);
    }
    expect(idsOf(await rig.restarted().pending())).toEqual(made);
  });

  test('an event that is recorded hours late is found, also by the process that closed its slot', async () => {
    const rig = deliveriesAt();
    await rig.recordNow(1);
    await rig.sendAll(delivered);
    const lateMs = rig.clock.now();
    rig.clock.jump(5 * hourMs);
    await rig.pending();
    expect(await slotsOf(rig)).toEqual([]);
    const late = await rig.recordAt(lateMs, 1);
    expect(idsOf(await rig.pending())).toEqual(late);
  });

  test('a delivery that is recorded between the read of an old slot and its end keeps the slot open', async () => {
    const rig = deliveriesAt();
    await rig.recordNow(1);
    await rig.sendAll(delivered);
    const lateMs = rig.clock.now();
    rig.clock.jump(5 * hourMs);
    const other = rig.restarted();
    let late: string[] = [];
    rig.beforeRemoval(async () => {
      late = await other.recordAt(lateMs, 1);
    });
    await rig.pending();
    expect(late).toHaveLength(1);
    expect(idsOf(await rig.pending())).toEqual(late);
    expect(idsOf(await other.pending())).toEqual(late);
  });

  test('a block whose slot was not opened because of a crash is found once its range is recorded again', async () => {
    const rig = deliveriesAt();
    rig.failing.add(slotKind);
    await expect(rig.recordNow(3)).rejects.toThrow();
    rig.failing.clear();
    expect(await rig.pending()).toEqual([]);
    const again = rig.restarted();
    expect(await again.recordNow(3)).toHaveLength(3);
    expect(await again.pending()).toHaveLength(3);
  });

  test('an attempt that is recorded is found when it is due, wherever a crash ended its recording', async () => {
    for (let writes = 0; writes < 4; writes++) {
      const rig = deliveriesAt();
      const made = await rig.recordNow(1);
      rig.dieAfter(writes);
      await rig.sendAll((one, nowMs) => retried(one, nowMs + 2 * hourMs)).catch(() => {});
      rig.clock.jump(2 * hourMs);
      expect(idsOf(await rig.restarted().pending()), `after ${writes} writes`).toEqual(made);
    }
  });

  test('a delivery that was recorded before there were slots is found, and is in a slot after an attempt', async () => {
    const rig = deliveriesAt();
    const made = await rig.recordNow(2);
    await rig.asBeforeSlots();
    expect(await slotsOf(rig)).toEqual([]);
    expect(idsOf(await rig.pending())).toEqual(made);
    const next = rig.restarted();
    const [first] = await next.pending();
    if (first?.blockId == null) expect.unreachable();
    rig.clock.jump(hourMs);
    await next.deliveries.replace(first, delivered(first, rig.clock.now()), rig.clock.now());
    expect(idsOf(await next.pending())).toEqual(made.slice(1));
    expect(idsOf(await rig.restarted().pending())).toEqual(made.slice(1));
    const [block] = await rig.memory.find(blockKind, { name: 'pending', value: subscriptionId }, { limit: 9 });
    expect(block).toBeUndefined();
    expect(await rig.memory.get(blockKind, first.blockId)).not.toBeNull();
  });

  test('that a subscription has none from before there were slots is remembered of a bounded number', async () => {
    const rig = deliveriesAt();
    const now = isoTime(rig.clock.now());
    const looks = async (id: string) => {
      rig.finds.length = 0;
      await rig.deliveries.pending(id, 1, now);
      return rig.finds.filter(({ name, value }) => name === 'pending' && value === id).length;
    };
    const first = await looks('first');
    expect([first, await looks('first')]).toEqual([2, 0]);
    for (let other = 0; other < movedMax; other += 1) await rig.deliveries.pending(`${other}`, 1, now);
    expect([await looks('first'), await looks(`${movedMax - 1}`)]).toEqual([2, 0]);
  });

  test('a delivery that the owner asked for is in a slot too', async () => {
    const rig = deliveriesAt();
    const id = await rig.ask();
    expect(idsOf(await rig.restarted().pending())).toEqual([id]);
    await rig.sendAll((one, nowMs) => retried(one, nowMs + 2 * hourMs));
    expect(await rig.pending()).toEqual([]);
    rig.clock.jump(2 * hourMs);
    expect(idsOf(await rig.restarted().pending())).toEqual([id]);
    await rig.sendAll(delivered);
    rig.clock.jump(hourMs);
    expect(await rig.pending()).toEqual([]);
    expect(
      await rig.memory.find('webhook_delivery_slot', { name: 'subscription', value: subscriptionId }, { limit: 9 }),
    ).toEqual([]);
  });

  test('a slot is the ten minutes that its order begins in', () => {
    expect(slotOf('2026-11-21T23:59:59.999Z|l|1')).toBe('2026-11-21T23:5');
    expect(slotOf('2026-11-22T00:00:00.000Z|l|1')).toBe('2026-11-22T00:0');
  });
});

describe('what a block leaves behind', () => {
  test('its look-up does not move at each attempt while some of its deliveries are new', async () => {
    const rig = deliveriesAt();
    await rig.recordNow(64);
    const orders = new Set<string>();
    for (let at = 0; at < 63; at++) {
      const [one] = await rig.pending();
      if (one === undefined) expect.unreachable();
      const nowMs = rig.clock.now();
      await rig.deliveries.replace(one, at % 2 === 0 ? delivered(one, nowMs) : retried(one, nowMs + hourMs), nowMs);
      for (const { lookups } of rig.puts(blockKind))
        for (const { name, order } of lookups) if (name === 'pending') orders.add(order);
    }
    expect(orders.size).toBe(1);
  });
});
