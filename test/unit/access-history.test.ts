import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { meterAccesses } from '../../src/access-meter.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { AccessQueue, accessKeptMs, historyBounds } from '../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../src/service/audit/access-record.ts';
import { auditService } from '../../src/service/audit/audit.ts';
import type { Call } from '../../src/service/call.ts';
import type { AccessEvent, AccessLog } from '../../src/store/access-log.ts';
import { accessTime } from '../../src/store/access-order.ts';
import { MemoryAccessLog } from '../../src/store/memory/access-log.ts';
import { ManualClock, settled } from '../support/clock.ts';

const actorId = '0199aaaa-0000-7000-8000-000000000001';
const startMs = Date.UTC(2026, 10, 21);
const { flushAfterMs, flushRecords, waitRecords, heldRecordsMax, lookUpsMax, retryFirstMs, retryMaxMs, lastFlushMs } =
  historyBounds;

const unavailable = () => new LedgerError('unavailable', 'The store is away.');

/** A queue over a memory log whose writes a test can make fail, or hang. */
function rig() {
  const clock = new ManualClock(startMs);
  const memory = new MemoryAccessLog();
  const appends: (readonly AccessEvent[])[] = [];
  const reports: string[] = [];
  const store = { fault: null as Error | null, gate: null as Promise<void> | null };
  const log: AccessLog = {
    append: async (events) => {
      appends.push(events);
      await store.gate;
      if (store.fault !== null) throw store.fault;
      await memory.append(events);
    },
    list: (id, page) => memory.list(id, page),
    sweep: (before) => memory.sweep(before),
  };
  const report = {
    failing: (error: unknown, held: number) => void reports.push(`failing ${error instanceof Error} ${held}`),
    recovered: () => void reports.push('recovered'),
    lost: (records: number, cause: unknown) => void reports.push(`lost ${records} ${cause === null}`),
  };
  const queue = new AccessQueue({ log, clock, random: randomBytes, report });
  let made = 0;
  const record = (over: Partial<AccessRecord> = {}): AccessRecord => ({
    actorId,
    apiKeyId: null,
    ledgerId: null,
    method: 'GET',
    path: '/v1/ledgers',
    responseStatus: 200,
    at: clock.now(),
    requestId: `${made++}`,
    ...over,
  });
  return {
    clock,
    store,
    queue,
    log,
    appends,
    reports,
    record,
    note: (count: number) => Array.from({ length: count }, () => queue.note(record())),
    stored: () => memory.list(actorId, { ledgerId: null, since: 0, limit: 1_000_000, offset: 0, descending: false }),
  };
}

const numbers = (events: readonly AccessEvent[]) => events.map((event) => Number(event.requestId));
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

/** Whether a promise is settled once everything else has gone on. */
async function isOpen(promise: Promise<unknown> | undefined): Promise<boolean> {
  let open = true;
  void promise?.then(() => {
    open = false;
  });
  await settled();
  return open;
}

describe('writing behind the answers', () => {
  test('a record waits for no write, and is written with those of the same moment', async () => {
    const { note, appends, clock, stored, queue } = rig();
    expect(note(3)).toEqual([undefined, undefined, undefined]);
    await clock.advance(flushAfterMs - 1);
    expect(appends).toHaveLength(0);
    expect(queue.held).toBe(3);
    await clock.advance(1);
    expect(appends).toHaveLength(1);
    expect(numbers(await stored())).toEqual([0, 1, 2]);
    expect(queue.held).toBe(0);
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

  test('what is noted during a write is written after it, without being asked for', async () => {
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

  test('flush resolves when what was noted before is written, and not for what comes later', async () => {
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

  test('keep their place, and hold back what comes behind them', async () => {
    const { queue, record, note, clock, stored, appends } = rig();
    const { promise, resolve } = lookUp();
    note(1);
    const [first, second] = [record(), record()];
    expect(queue.note(promise)).toBeUndefined();
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

  test('are waited for by a flush, and by a stop', async () => {
    for (const wait of [(queue: AccessQueue) => queue.flush(), (queue: AccessQueue) => queue[Symbol.asyncDispose]()]) {
      const { queue, record, stored } = rig();
      const { promise, resolve } = lookUp();
      queue.note(promise);
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
    queue.note(promise);
    const stopped = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await stopped;
    expect(reports).toEqual(['lost 1 true']);
    resolve([record()]);
    await settled();
    expect(await stored()).toEqual([]);
  });

  test('that turn out to be none are not written', async () => {
    const { queue, appends, clock } = rig();
    queue.note(Promise.resolve([]));
    await queue.flush();
    await clock.advance(flushAfterMs);
    expect(appends).toEqual([]);
    expect(queue.held).toBe(0);
  });

  test('let their answers go, until too many are looked up at once: then an answer waits for its own', async () => {
    const { queue, record } = rig();
    const early = Array.from({ length: lookUpsMax }, lookUp);
    expect(early.map(({ promise }) => queue.note(promise)).every((wait) => wait === undefined)).toBe(true);
    const one = lookUp();
    const wait = queue.note(one.promise);
    expect(await isOpen(wait)).toBe(true);
    early[0]?.resolve([record()]);
    expect(await isOpen(wait)).toBe(true);
    one.resolve([record()]);
    expect(await isOpen(wait)).toBe(false);
    expect(queue.note(lookUp().promise)).toBeUndefined();
  });

  test('that cannot be looked up are lost and told, and hold up neither those behind them nor their answers', async () => {
    const { queue, record, note, stored, reports } = rig();
    note(1);
    expect(queue.note(Promise.reject(new URIError('URI malformed')))).toBeUndefined();
    note(1);
    await queue.flush();
    expect(numbers(await stored())).toEqual([0, 1]);
    expect(reports).toEqual(['lost 1 false']);
    expect([queue.held, queue.lost]).toEqual([0, 1]);

    const open = Array.from({ length: lookUpsMax }, lookUp);
    for (const { promise } of open) queue.note(promise);
    const one = lookUp();
    const wait = queue.note(one.promise);
    one.reject(new Error('broken'));
    expect(await isOpen(wait)).toBe(false);
    for (const { resolve } of open) resolve([]);
    queue.note(record());
    await queue.flush();
    expect(numbers(await stored())).toEqual([0, 1, 2]);
    expect(queue.lost).toBe(2);
  });

  test('that fail after a stop has given them up are lost once', async () => {
    const { queue, clock, reports } = rig();
    const { promise, reject } = lookUp();
    queue.note(promise);
    const stopped = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await stopped;
    reject(new Error('the store was closed'));
    await settled();
    expect(reports).toEqual(['lost 1 true']);
    expect(queue.lost).toBe(1);
    expect(queue.note(Promise.reject(new Error('too late')))).toBeUndefined();
    await settled();
    expect(queue.lost).toBe(2);
  });

  test('count as waiting: with too many, answers wait for room', async () => {
    const { queue, note, record, store } = rig();
    store.gate = new Promise(() => {});
    note(waitRecords - 1);
    expect(await isOpen(queue.note(Promise.resolve([record()])))).toBe(true);
  });
});

describe('a store that fails', () => {
  test('records are kept, tried again after longer and longer pauses, and all written in their order', async () => {
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

  test('a batch that is tried again is the same batch, so that one which was written after all stands there once', async () => {
    const { note, appends, clock, store } = rig();
    store.fault = unavailable();
    note(2);
    await clock.advance(flushAfterMs);
    note(2);
    store.fault = null;
    await clock.advance(retryFirstMs);
    expect(appends[1]).toEqual(appends[0]);
  });

  test('flush does not wait for a store that fails', async () => {
    const { note, clock, queue, store } = rig();
    store.fault = unavailable();
    note(1);
    expect(await isOpen(queue.flush())).toBe(false);
    expect(await isOpen(queue.flush())).toBe(false);
    store.fault = null;
    await clock.advance(retryFirstMs);
    expect(queue.held).toBe(0);
  });

  test('when too many records wait, answers wait for room, and no record is lost', async () => {
    const { note, queue, record, clock, store, stored, reports } = rig();
    store.fault = unavailable();
    expect(note(waitRecords - 1).every((room) => room === undefined)).toBe(true);
    await settled();
    const [first, second] = [queue.note(record()), queue.note(record())];
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

  test('beyond the last bound records are lost, nothing more is held, and it is said how many', async () => {
    const { note, queue, clock, store, reports } = rig();
    store.fault = unavailable();
    note(heldRecordsMax + 5);
    expect(queue.held).toBe(heldRecordsMax);
    store.fault = null;
    await clock.advance(retryMaxMs);
    expect(queue.held).toBe(0);
    expect(reports).toContain('lost 5 true');
  });

  test('events that no store takes are given up and do not hold up the others', async () => {
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
  test('writes what waits, at once', async () => {
    const { note, queue, stored, clock } = rig();
    note(flushRecords + 3);
    await queue[Symbol.asyncDispose]();
    expect(numbers(await stored())).toEqual(upTo(flushRecords + 3));
    expect(clock.timers).toBe(0);
  });

  test('waits for the write under way and writes what came behind it', async () => {
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

  test('tries a failing store again before it gives up, says what was lost, and lets waiting answers go', async () => {
    const { note, queue, record, store, clock, reports, appends } = rig();
    store.fault = unavailable();
    note(waitRecords);
    const waiting = queue.note(record());
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

  test('a store that recovers while the node stops gets everything', async () => {
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

  test('a store that hangs does not keep the node from stopping', async () => {
    const { note, queue, store, clock, reports } = rig();
    store.gate = new Promise(() => {});
    note(2);
    const disposed = queue[Symbol.asyncDispose]();
    await clock.advance(lastFlushMs);
    await disposed;
    expect(reports).toEqual(['lost 2 true']);
  });

  test('a record that comes too late is counted, and its answer does not wait', async () => {
    const { queue, record, reports } = rig();
    await queue[Symbol.asyncDispose]();
    expect(queue.note(record())).toBeUndefined();
    expect(queue.held).toBe(0);
    expect(reports).toEqual(['lost 1 true']);
  });
});

describe('what operators see', () => {
  test('how many records wait, and how many were lost, whyever', async () => {
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
    note(heldRecordsMax + 7);
    // Told at once, though the log is told when it is over.
    expect(await seen()).toEqual([heldRecordsMax, 7]);
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

describe('90 days', () => {
  const dayMs = 24 * 60 * 60_000;

  test('a call is listed to the millisecond, whether its record was swept or not, and swept by then', async () => {
    const { clock, queue, note, log } = rig();
    const audit = auditService(
      log,
      () => queue.flush(),
      () => clock.now(),
    );
    const caller = { actorId, world: 'sandbox', via: 'api_key', apiKeyId: 'k', actorType: 'service', mustSign: false };
    const listed = async () => {
      const request = { $typeName: 'svc.v1.ListAccessEventsRequest' } as const;
      return (await audit.listAccessEvents(request, { caller } as Call)).accessEvents.map(({ requestId }) => requestId);
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
