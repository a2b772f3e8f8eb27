import { describe, expect, test } from 'vitest';
import { accessRecordBytes } from '../../../../src/runtime/limits/queue-bounds.ts';
import { type AccessQueue, historyBounds } from '../../../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../../../src/service/audit/access-record.ts';
import { auditService } from '../../../../src/service/audit/audit.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { accessKeptMs, accessTime } from '../../../../src/store/access-log.ts';
import {
  actorId,
  isOpen,
  numbers,
  accessHistoryRig as rig,
  startMs,
  upTo,
  waitRecords,
} from '../../../support/access-history-rig.ts';
import { settled } from '../../../support/clock.ts';

const { flushAfterMs, flushRecords, lookUpsMax, lastFlushMs } = historyBounds;

describe('writing behind the answers', () => {
  test('an answer waits for no write, and its record is written with those of the same 100 ms', async () => {
    const { note, appends, clock, stored, queue, heldBytes } = rig();
    expect(note(3)).toEqual([undefined, undefined, undefined]);
    await clock.advance(flushAfterMs - 1);
    expect(appends).toHaveLength(0);
    expect([queue.held, heldBytes()]).toEqual([3, 3 * accessRecordBytes]);
    await clock.advance(1);
    expect(appends).toHaveLength(1);
    expect(numbers(await stored())).toEqual([0, 1, 2]);
    expect([queue.held, heldBytes()]).toEqual([0, 0]);
    expect(clock.timers).toBe(0);
  });

  test('many records are written at once, one write at a time, in their order', async () => {
    const { note, appends, clock, stored, store } = rig();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    note(flushRecords * 2 + 7);
    await settled();
    expect(appends.map((events) => events.length)).toEqual([flushRecords]);
    gate.resolve();
    await settled();
    expect(appends.map((events) => events.length)).toEqual([flushRecords, flushRecords]);
    await clock.advance(flushAfterMs);
    expect(appends).toHaveLength(3);
    expect(numbers(await stored())).toEqual(upTo(flushRecords * 2 + 7));
  });

  test('records that are noted during a write are written after it', async () => {
    const { note, clock, store, stored } = rig();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    note(1);
    await clock.advance(flushAfterMs);
    note(2);
    gate.resolve();
    await clock.advance(flushAfterMs);
    expect(numbers(await stored())).toEqual([0, 1, 2]);
  });

  test('ids carry the time of the answer and ascend, also within a millisecond and when the clock goes back', async () => {
    const { note, clock, stored, queue } = rig();
    note(5000);
    clock.jump(-60_000);
    note(10);
    clock.jump(120_000);
    note(1);
    await queue.flush();
    const events = await stored();
    expect(numbers(events)).toEqual(upTo(5011));
    expect(new Set(events.map(({ id }) => id)).size).toBe(5011);
    expect(accessTime(events[0]?.id ?? '')).toBe(startMs);
    expect(accessTime(events[4999]?.id ?? '')).toBeLessThan(startMs + 5);
    expect(accessTime(events[5010]?.id ?? '')).toBe(startMs + 60_000);
  });

  test('flush resolves when the earlier records are written, and does not wait for later ones', async () => {
    const { note, queue, store, stored } = rig();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    note(2);
    const flushed = queue.flush();
    expect(await isOpen(flushed)).toBe(true);
    note(1);
    gate.resolve();
    await flushed;
    expect(numbers(await stored())).toEqual([0, 1]);
    await queue.flush();
    expect(numbers(await stored())).toEqual([0, 1, 2]);
    expect(await isOpen(queue.flush())).toBe(false);
  });
});

describe('records whose ledgers are still looked up', () => {
  /** An entry that is looked up until the test says what was found. */
  const lookUp = () => Promise.withResolvers<readonly AccessRecord[]>();

  test('keep their place, and hold back later records', async () => {
    const { queue, record, note, clock, stored, appends } = rig();
    const { promise, resolve } = lookUp();
    note(1);
    const [first, second] = [record(), record()];
    expect(queue.note(promise, actorId)).toBeUndefined();
    note(1);
    expect(queue.held).toBe(3);
    await clock.advance(flushAfterMs);
    expect(appends).toEqual([]);
    expect(queue.held).toBe(3);
    resolve([first, second]);
    await settled();
    expect(numbers(await stored())).toEqual([0, 1, 2, 3]);
    expect(queue.held).toBe(0);
  });

  test('are waited for by flush and by a stop', async () => {
    for (const wait of [(queue: AccessQueue) => queue.flush(), (queue: AccessQueue) => queue[Symbol.asyncDispose]()]) {
      const { queue, record, stored } = rig();
      const { promise, resolve } = lookUp();
      queue.note(promise, actorId);
      const written = wait(queue);
      expect(await isOpen(written)).toBe(true);
      resolve([record()]);
      await written;
      expect(numbers(await stored())).toEqual([0]);
    }
  });

  test('are lost by a stop that has waited long enough', async () => {
    const { queue, record, clock, reports, stored } = rig();
    const { promise, resolve } = lookUp();
    queue.note(promise, actorId);
    const stopped = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await stopped;
    expect(reports).toEqual(['lost 1 true']);
    resolve([record()]);
    await settled();
    expect(await stored()).toEqual([]);
  });

  test('are not written if no ledger is found', async () => {
    const { queue, appends, clock } = rig();
    queue.note(Promise.resolve([]), actorId);
    await queue.flush();
    await clock.advance(flushAfterMs);
    expect(appends).toEqual([]);
    expect(queue.held).toBe(0);
  });

  test('do not delay their answers, until too many are looked up at once: then an answer waits for its own look-up', async () => {
    const { queue, record } = rig();
    const early = Array.from({ length: lookUpsMax }, lookUp);
    expect(early.map(({ promise }) => queue.note(promise, actorId)).every((wait) => wait === undefined)).toBe(true);
    const one = lookUp();
    const wait = queue.note(one.promise, actorId);
    expect(await isOpen(wait)).toBe(true);
    early[0]?.resolve([record()]);
    expect(await isOpen(wait)).toBe(true);
    one.resolve([record()]);
    expect(await isOpen(wait)).toBe(false);
    expect(queue.note(lookUp().promise, actorId)).toBeUndefined();
  });

  test('are lost and reported if the look-up fails, and hold up neither later records nor answers', async () => {
    const { queue, record, note, stored, reports } = rig();
    note(1);
    expect(queue.note(Promise.reject(new URIError('URI malformed')), actorId)).toBeUndefined();
    note(1);
    await queue.flush();
    expect(numbers(await stored())).toEqual([0, 1]);
    expect(reports).toEqual(['lost 1 false']);
    expect([queue.held, queue.lost]).toEqual([0, 1]);

    const open = Array.from({ length: lookUpsMax }, lookUp);
    for (const { promise } of open) queue.note(promise, actorId);
    const one = lookUp();
    const wait = queue.note(one.promise, actorId);
    one.reject(new Error('broken'));
    expect(await isOpen(wait)).toBe(false);
    for (const { resolve } of open) resolve([]);
    queue.note(record(), actorId);
    await queue.flush();
    expect(numbers(await stored())).toEqual([0, 1, 2]);
    expect(queue.lost).toBe(2);
  });

  test('are counted as lost once if they fail after a stop has given them up', async () => {
    const { queue, clock, reports } = rig();
    const { promise, reject } = lookUp();
    queue.note(promise, actorId);
    const stopped = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await stopped;
    reject(new Error('the store was closed'));
    await settled();
    expect(reports).toEqual(['lost 1 true']);
    expect(queue.lost).toBe(1);
    expect(queue.note(Promise.reject(new Error('too late')), actorId)).toBeUndefined();
    await settled();
    expect(queue.lost).toBe(2);
  });

  test('count as waiting records: if there are too many, answers wait for room', async () => {
    const { queue, note, record, store } = rig();
    store.gate = new Promise(() => {});
    note(waitRecords - 1);
    expect(await isOpen(queue.note(Promise.resolve([record()]), actorId))).toBe(true);
  });
});

describe('90 days', () => {
  const dayMs = 24 * 60 * 60_000;

  test('a call is listed for exactly that time, and its record can be swept afterwards', async () => {
    const { clock, queue, note, log } = rig();
    const audit = auditService(
      log,
      () => queue.flush(),
      () => clock.now(),
    );
    const caller = { actorId, world: 'sandbox', via: 'api_key', apiKeyId: 'k', actorType: 'service', mustSign: false };
    const listed = async () => {
      const request = { $typeName: 'svc.v1.ListAccessEventsRequest' } as const;
      return (await audit.listAccessEvents(request, { caller, walk: unboundedWalk() } as Call)).accessEvents.map(
        ({ requestId }) => requestId,
      );
    };
    note(1);
    clock.jump(dayMs);
    note(1);
    await queue.flush();
    clock.jump(89 * dayMs);
    expect(accessKeptMs).toBe(90 * dayMs);
    expect(await listed()).toEqual(['1', '0']);
    clock.jump(1);
    expect(await listed()).toEqual(['1']);
    // What a node does every minute; a store may keep a part of the time longer.
    clock.jump(15 * dayMs);
    await log.sweep(clock.now() - accessKeptMs);
    const page = { ledgerId: null, since: 0, limit: 10, offset: 0, descending: false };
    expect(await log.list(actorId, page)).toEqual([]);
  });
});
