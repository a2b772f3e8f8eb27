import { describe, expect, test } from 'vitest';
import { requestedKind } from '../../../src/service/webhooks/requested-deliveries.ts';
import { writeUnknown } from '../../../src/store/record-store.ts';
import { append, supplier } from '../../support/commands.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { faultyRecordStore, scriptedFaults } from '../../support/store-faults.ts';
import { hookUrl, onlyDelivery, second, webhookOrder } from '../../support/webhook-order.ts';
import { answer, typesSent } from '../../support/webhook-rig.ts';
import { beforeCalls, recordsWith } from '../../support/world.ts';

describe('faults', () => {
  test('a delivery whose record cannot be written is sent again, and one that cannot be read waits', async () => {
    const faults = scriptedFaults();
    const world = await webhookOrder({ wrapRecords: (inner) => faultyRecordStore(inner, faults.choose) });
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    world.receivers.set(hookUrl, () => {
      faults.fail('record-write', ...Array<'unavailable'>(5).fill('unavailable'));
      world.receivers.delete(hookUrl);
      return answer(200);
    });
    await world.runToEnd(append());
    for (let at = 0; at < 10; at++) {
      await world.advance(second);
    }
    expect(world.posts).toHaveLength(2);
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'DELIVERED', attempt: 0 });
  });

  test('a PING whose record landed without an answer is sent at once', async () => {
    const memory = new MemoryRecordStore();
    const records = recordsWith(memory, {
      put: async (write) => {
        const put = await memory.put(write);
        if (write.kind === requestedKind && write.replaces === 'absent') throw writeUnknown();
        return put;
      },
    });
    const world = await webhookOrder({ records });
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    await world.quiet();
    const tested = world.ping(supplier, id);
    await expect(tested).rejects.toMatchObject({ code: 'outcome_unknown' });
    await world.quiet();
    expect(typesSent(world, hookUrl)).toEqual(['PING']);
  });

  test('an event that cannot be read now is no attempt', async () => {
    let down = false;
    const world = await webhookOrder({
      wrapLedgers: (inner) =>
        beforeCalls(inner, {
          read: (_ledger, from, limit) => {
            if (down && limit === 1 && from === 4) throw new Error('the disk is slow');
          },
        }),
    });
    const { id } = await world.subscribe(supplier, { url: hookUrl });
    await world.runToEnd(append());
    down = true;
    await world.runToEnd(append());
    await world.advance(5 * second);
    const before = (await world.deliveries(supplier, id)).deliveries;
    expect(before[1]).toMatchObject({ status: 'PENDING', attempt: 0, lastError: undefined });
    down = false;
    await world.advance(second);
    const after = (await world.deliveries(supplier, id)).deliveries;
    expect(after[1]).toMatchObject({ status: 'DELIVERED', attempt: 0 });
  });
});
