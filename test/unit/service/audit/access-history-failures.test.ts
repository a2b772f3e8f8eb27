import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { meterAccesses } from '../../../../src/node/subsystems/accesses.ts';
import { historyBounds } from '../../../../src/service/audit/access-history.ts';
import { StoreStopped } from '../../../../src/store/ledger-store.ts';
import {
  actorId,
  heldRecordsMax,
  isOpen,
  numbers,
  accessHistoryRig as rig,
  unavailable,
  upTo,
  waitRecords,
} from '../../../support/access-history-rig.ts';
import { settled } from '../../../support/clock.ts';

const { flushAfterMs, flushRecords, retryFirstMs, retryMaxMs, lastFlushMs } = historyBounds;
/** The most records of one actor that wait, while no other actor has any. */
const ownRecordsMax = heldRecordsMax / 2;

describe('a store that fails', () => {
  test('gets its records again after growing pauses, and all of them in order', async () => {
    const { note, appends, clock, store, stored, reports } = rig();
    store.fault = unavailable();
    note(3);
    await clock.advance(flushAfterMs);
    expect(appends).toHaveLength(1);
    for (const [pauseMs, tries] of [
      [retryFirstMs, 2],
      [2 * retryFirstMs, 3],
      [4 * retryFirstMs, 4],
    ] as const) {
      await clock.advance(pauseMs - 1);
      expect(appends).toHaveLength(tries - 1);
      await clock.advance(1);
      expect(appends).toHaveLength(tries);
    }
    note(2);
    await clock.advance(100 * retryMaxMs);
    expect(appends.length).toBeGreaterThan(100);
    expect(appends.length).toBeLessThan(115);
    store.fault = null;
    await clock.advance(retryMaxMs + flushAfterMs);
    expect(numbers(await stored())).toEqual([0, 1, 2, 3, 4]);
    expect(reports).toEqual(['failing true 3', 'recovered']);
  });

  test('gets the same batch at each attempt, so that a batch with an unknown outcome is stored once', async () => {
    const { note, appends, clock, store } = rig();
    store.fault = unavailable();
    note(2);
    await clock.advance(flushAfterMs);
    note(2);
    store.fault = null;
    await clock.advance(retryFirstMs);
    expect(appends[1]).toEqual(appends[0]);
  });

  test('and has stopped for good lets no answer wait for room, and every record counts as lost', async () => {
    const { note, appends, clock, store, queue, reports } = rig();
    store.fault = new StoreStopped();
    note(1);
    await clock.advance(flushAfterMs);
    expect(note(waitRecords + 10).filter((room) => room !== undefined)).toEqual([]);
    await clock.advance(retryMaxMs);
    expect([appends.length, queue.held, queue.lost]).toEqual([1, 0, waitRecords + 11]);
    await queue[Symbol.asyncDispose]();
    expect(reports).toEqual([`lost ${waitRecords + 11} true`]);
  });

  test('is not waited for by flush', async () => {
    const { note, clock, queue, store } = rig();
    store.fault = unavailable();
    note(1);
    expect(await isOpen(queue.flush())).toBe(false);
    expect(await isOpen(queue.flush())).toBe(false);
    store.fault = null;
    await clock.advance(retryFirstMs);
    expect(queue.held).toBe(0);
  });

  test('makes answers wait for room when too many records wait, and no record is lost', async () => {
    const { note, queue, record, clock, store, stored, reports } = rig();
    store.fault = unavailable();
    expect(note(waitRecords - 1).every((room) => room === undefined)).toBe(true);
    await settled();
    const [first, second] = [queue.note(record(), actorId), queue.note(record(), actorId)];
    expect(await isOpen(first)).toBe(true);
    expect(await isOpen(second)).toBe(true);
    await clock.advance(retryFirstMs);
    expect(await isOpen(first)).toBe(true);
    store.fault = null;
    await clock.advance(retryMaxMs);
    expect(await isOpen(first)).toBe(false);
    expect(await isOpen(second)).toBe(false);
    await clock.advance(flushAfterMs);
    expect(numbers(await stored())).toEqual(upTo(waitRecords + 1));
    expect(reports.filter((line) => line.startsWith('lost'))).toEqual([]);
  });

  test('loses and reports the records beyond the last bound', async () => {
    const { note, queue, clock, store, reports } = rig();
    store.fault = unavailable();
    note(ownRecordsMax + 5);
    expect(queue.held).toBe(ownRecordsMax);
    store.fault = null;
    await clock.advance(retryMaxMs);
    expect(queue.held).toBe(0);
    expect(reports).toContain('lost 5 true');
  });

  test('gives up events that no store accepts, and goes on with the others', async () => {
    const { note, clock, store, stored, reports } = rig();
    store.fault = new RangeError('no UUID');
    note(2);
    await clock.advance(flushAfterMs);
    store.fault = null;
    note(1);
    await clock.advance(flushAfterMs);
    expect(numbers(await stored())).toEqual([2]);
    expect(reports).toEqual(['lost 2 false']);
  });
});

describe('a stopping node', () => {
  test('writes the waiting records at once', async () => {
    const { note, queue, stored, clock } = rig();
    note(flushRecords + 3);
    await queue[Symbol.asyncDispose]();
    expect(numbers(await stored())).toEqual(upTo(flushRecords + 3));
    expect(clock.timers).toBe(0);
  });

  test('waits for the write in flight and writes the later records', async () => {
    const { note, queue, store, stored, clock } = rig();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    note(1);
    await clock.advance(flushAfterMs);
    note(1);
    const disposed = queue[Symbol.asyncDispose]();
    expect(await isOpen(disposed)).toBe(true);
    gate.resolve();
    await disposed;
    expect(numbers(await stored())).toEqual([0, 1]);
  });

  test('retries a failing store before it gives up, reports what was lost, and releases waiting answers', async () => {
    const { note, queue, record, store, clock, reports, appends } = rig();
    store.fault = unavailable();
    note(waitRecords);
    const waiting = queue.note(record(), actorId);
    await settled();
    const disposed = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs - 1);
    expect(appends.length).toBeGreaterThan(10);
    expect(await isOpen(disposed)).toBe(true);
    await clock.advance(1);
    await disposed;
    expect(await isOpen(waiting)).toBe(false);
    expect(reports.at(-1)).toBe(`lost ${waitRecords + 1} true`);
    const tries = appends.length;
    await clock.advance(10 * retryMaxMs);
    expect(appends).toHaveLength(tries);
  });

  test('writes everything to a store that recovers meanwhile', async () => {
    const { note, queue, store, clock, stored, reports } = rig();
    store.fault = unavailable();
    note(2);
    await clock.advance(flushAfterMs + 5 * retryMaxMs);
    const disposed = queue[Symbol.asyncDispose]();
    store.fault = null;
    await clock.advance(lastFlushMs - 1);
    await disposed;
    expect(numbers(await stored())).toEqual([0, 1]);
    expect(reports.at(-1)).toBe('recovered');
  });

  test('ends although the store hangs', async () => {
    const { note, queue, store, clock, reports } = rig();
    store.gate = new Promise(() => {});
    note(2);
    const disposed = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await disposed;
    expect(reports).toEqual(['lost 2 true']);
  });

  test('counts a record that comes too late, and its answer does not wait', async () => {
    const { queue, record, reports } = rig();
    await queue[Symbol.asyncDispose]();
    expect(queue.note(record(), actorId)).toBeUndefined();
    expect(queue.held).toBe(0);
    expect(reports).toEqual(['lost 1 true']);
  });
});

describe('metrics', () => {
  test('show how many records wait, and how many were lost for any reason', async () => {
    const { note, queue, clock, store } = rig();
    const registry = new Registry();
    meterAccesses(registry, queue);
    const seen = async () => {
      const text = await registry.metrics();
      return ['svc_access_records_held', 'svc_access_records_lost_total'].map((name) =>
        Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]),
      );
    };
    expect(await seen()).toEqual([0, 0]);
    store.fault = unavailable();
    note(ownRecordsMax + 7);
    // Told at once, though the log is told when it is over.
    expect(await seen()).toEqual([ownRecordsMax, 7]);
    store.fault = null;
    await clock.advance(retryMaxMs);
    expect(await seen()).toEqual([0, 7]);
    store.fault = new RangeError('no UUID');
    note(2);
    await clock.advance(flushAfterMs);
    expect(await seen()).toEqual([0, 9]);
    store.gate = new Promise(() => {});
    note(3);
    const disposed = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await disposed;
    expect((await seen())[1]).toBe(12);
  });
});
