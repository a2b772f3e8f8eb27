import { describe, expect, test } from 'vitest';
import { historyBounds } from '../../../../src/service/audit/access-history.ts';
import {
  actorId,
  heldRecordsMax,
  isOpen,
  accessHistoryRig as rig,
  unavailable,
  waitRecords,
} from '../../../support/access-history-rig.ts';
import { settled } from '../../../support/clock.ts';

const { flushRecords, retryMaxMs } = historyBounds;
const otherId = '0199aaaa-0000-7000-8000-000000000002';

describe('room in the queue', () => {
  test('is shared by actor: only answers of an actor with its equal part or more wait', async () => {
    const { note, queue, record, store } = rig();
    store.gate = new Promise(() => {});
    const ofOther = () => queue.note(record({ actorId: otherId }), otherId);
    note(waitRecords);
    expect(await isOpen(queue.note(record(), actorId))).toBe(true);
    const others = Array.from({ length: waitRecords / 2 - 1 }, ofOther);
    expect(others.filter((room) => room !== undefined)).toEqual([]);
    expect(await isOpen(ofOther())).toBe(true);
  });

  test('is given back to each actor as its records are written', async () => {
    const { queue, record, store } = rig();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    const rooms = [actorId, otherId].map((id) => {
      for (let at = 0; at < waitRecords - 1; at += 1) queue.note(record({ actorId: id }), id);
      return queue.note(record({ actorId: id }), id);
    });
    expect(await Promise.all(rooms.map(isOpen))).toEqual([true, true]);
    // The oldest records are of the first actor: it has less than its part once half of them are written.
    const released: string[] = [];
    for (const [at, room] of rooms.entries()) void room?.then(() => released.push(`${at} ${queue.held}`));
    gate.resolve();
    await expect.poll(() => released.length).toBe(2);
    const [first] = released;
    expect(first).toBe(`0 ${2 * waitRecords - waitRecords / 2 - flushRecords}`);
  });

  test('is left for others by an actor whose records no store takes: it loses its own beyond half', async () => {
    const { note, queue, record, clock, store, log, stored, reports } = rig();
    store.fault = unavailable();
    note(heldRecordsMax);
    await settled();
    expect(queue.held).toBe(heldRecordsMax / 2);
    const others = Array.from({ length: 100 }, () => queue.note(record({ actorId: otherId }), otherId));
    expect(others.filter((room) => room !== undefined)).toEqual([]);
    store.fault = null;
    await clock.advance(retryMaxMs);
    await queue.flush();
    expect(reports).toContain(`lost ${heldRecordsMax / 2} true`);
    expect(await stored()).toHaveLength(heldRecordsMax / 2);
    const page = { ledgerId: null, since: 0, limit: 1_000, offset: 0, descending: false };
    expect(await log.list(otherId, page)).toHaveLength(100);
  });

  test('is bounded for all actors together', () => {
    const { queue, record, store } = rig();
    store.gate = new Promise(() => {});
    for (let at = 0; at < heldRecordsMax + 50; at += 1) queue.note(record({ actorId: `${at}` }), `${at}`);
    expect([queue.held, queue.lost]).toEqual([heldRecordsMax, 50]);
  });
});
