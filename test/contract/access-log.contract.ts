import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import type { AccessEvent, AccessLog, AccessPage } from '../../src/store/access-log.ts';
import type { Stores } from '../../src/store/stores.ts';
import type { StoreFactory, TestClock } from './stores.ts';

interface AccessLogFactory {
  /** `clock` is that of the process. */
  open(clock: TestClock): Promise<AccessLog>;
  /** The same data as a new process finds it. */
  reopen(): Promise<AccessLog>;
  close(): Promise<void>;
}

export function accessOf(stores: StoreFactory<Stores>): AccessLogFactory {
  return {
    open: async (clock) => (await stores.open(clock)).access,
    reopen: async () => (await stores.reopen()).access,
    close: () => stores.close(),
  };
}

const DAY_MS = 24 * 60 * 60 * 1000;
const everything: AccessPage = { ledgerId: null, since: 0, limit: 1000, offset: 0, descending: false };

/**
 * Everything that the port promises, against one kind of log. Time goes on from test to test, as it does for a writer.
 */
export function accessLogContract(name: string, factory: AccessLogFactory): void {
  describe(name, () => {
    let log: AccessLog;
    let now = Date.UTC(2026, 0, 1);
    let made = 0;
    beforeAll(async () => {
      log = await factory.open({
        get nowMs() {
          return now;
        },
      });
    });
    afterAll(() => factory.close());

    /** A UUIDv7 behind all that were made before it. */
    const nextId = () => {
      made = (made + 1) % 4096;
      if (made === 0) now += 1;
      return uuidV7(now, Buffer.concat([Buffer.of(made >> 8, made & 255), randomBytes(8)]));
    };
    const event = (over: Partial<AccessEvent> = {}): AccessEvent => ({
      id: nextId(),
      actorId: 'none',
      apiKeyId: null,
      ledgerId: null,
      method: 'GET',
      path: '/v1/ledgers',
      responseStatus: 200,
      requestId: `request-${made}`,
      ...over,
    });
    const list = (actorId: string, page: Partial<AccessPage> = {}) => log.list(actorId, { ...everything, ...page });
    const ids = (events: readonly AccessEvent[]) => events.map(({ id }) => id);

    /** Whether the pages of a history, as a whole (null) and by ledger, are parts of one order, in both directions. */
    async function expectPages(
      events: readonly AccessEvent[],
      ledgers: readonly (string | null)[],
      pages: (count: number) => readonly (readonly [offset: number, limit: number])[],
    ): Promise<void> {
      const actorId = events[0]?.actorId ?? '';
      for (const ledgerId of ledgers)
        for (const descending of [false, true]) {
          const own = ids(events.filter((one) => ledgerId === null || one.ledgerId === ledgerId));
          if (descending) own.reverse();
          for (const [offset, limit] of pages(own.length)) {
            const page = await list(actorId, { ledgerId, descending, offset, limit });
            expect(ids(page)).toEqual(own.slice(offset, offset + limit));
          }
        }
    }

    test('an event is listed as it was appended, also after a restart', async () => {
      const actorId = randomUUID();
      const events = [
        event({
          actorId,
          apiKeyId: randomUUID(),
          ledgerId: randomUUID(),
          responseStatus: 404,
          path: '/v1/ü"\\😀\u2028',
        }),
        event({ actorId, method: 'POST', requestId: 'a.B-9' }),
      ];
      await log.append(events);
      expect(await list(actorId)).toEqual(events);
      log = await factory.reopen();
      expect(await list(actorId)).toEqual(events);
    });

    test('a page tells its reader what it looked at, also what it passes over', async () => {
      const actorId = randomUUID();
      await log.append(Array.from({ length: 100 }, () => event({ actorId })));
      let examined = 0;
      const reading = {
        signal: new AbortController().signal,
        examined(count: number) {
          examined += count;
        },
      };
      expect(await log.list(actorId, { ...everything, limit: 1, offset: 98 }, reading)).toHaveLength(1);
      // An event is looked at, or the block that it is in.
      expect(examined).toBeGreaterThan(1);
    });

    test('an actor sees its own events only, also those of a shared ledger', async () => {
      const [mine, theirs, ledgerId] = [randomUUID(), randomUUID(), randomUUID()];
      const events = Array.from({ length: 200 }, (_, at) => event({ actorId: at % 2 === 0 ? mine : theirs, ledgerId }));
      await log.append(events);
      for (const actorId of [mine, theirs]) {
        const own = events.filter((one) => one.actorId === actorId);
        expect(await list(actorId)).toEqual(own);
        expect(await list(actorId, { ledgerId })).toEqual(own);
      }
      expect(await list(randomUUID(), { ledgerId })).toEqual([]);
      expect(await list(mine, { ledgerId: randomUUID() })).toEqual([]);
    });

    test('pages of any size, offset, direction and ledger are parts of one order', async () => {
      const actorId = randomUUID();
      const ledgers = [randomUUID(), randomUUID(), randomUUID(), null];
      const events: AccessEvent[] = [];
      for (const size of [1, 2, 31, 32, 33, 64, 100, 1, 40]) {
        const flush = Array.from({ length: size }, () => {
          // In large appends twenty events of one ledger follow each other, in small ones the ledgers alternate.
          const ledgerId = ledgers[Math.floor(made / (size > 50 ? 20 : 1)) % 4] ?? null;
          return event({ actorId, ledgerId });
        });
        await log.append(flush);
        events.push(...flush);
        now += 3;
      }
      await expectPages(events, ledgers, (count) => [
        [0, 1000],
        [0, 1],
        [1, 1],
        [31, 2],
        [32, 33],
        [30, 90],
        [count - 1, 10],
        [count, 10],
        [100_000, 10],
        [0, 0],
      ]);
    });

    test('a history of many single events is paged to its end', async () => {
      const [actorId, ledgerId] = [randomUUID(), randomUUID()];
      const events = Array.from({ length: 700 }, (_, at) =>
        event({ actorId, ledgerId: at % 7 === 0 ? null : ledgerId }),
      );
      await Promise.all(events.map((one) => log.append([one])));
      await expectPages(events, [null, ledgerId], () => [
        [0, 1000],
        [255, 3],
        [256, 1],
        [511, 120],
        [590, 9],
      ]);
    });

    test('no event before `since` is shown', async () => {
      const [actorId, ledgerId] = [randomUUID(), randomUUID()];
      const events: AccessEvent[] = [];
      for (let at = 0; at < 70; at++) {
        now += 10;
        events.push(event({ actorId, ledgerId: at % 3 === 0 ? null : ledgerId }));
      }
      const end = now;
      await log.append(events.slice(0, 10));
      await log.append(events.slice(10));
      for (const back of [0, 1, 10, 95, 300, 301, 599, 600, 690, 10_000])
        for (const descending of [false, true])
          for (const ledger of [null, ledgerId])
            for (const offset of [0, 2, 40]) {
              const own = events.slice(Math.max(0, 69 - Math.floor(back / 10)));
              const shown = ids(own.filter((one) => ledger === null || one.ledgerId === ledger));
              const page = { since: end - back, descending, ledgerId: ledger, offset };
              expect(ids(await list(actorId, page))).toEqual((descending ? shown.reverse() : shown).slice(offset));
            }
    });

    test('events that are appended twice are listed once', async () => {
      const actorId = randomUUID();
      const events = Array.from({ length: 40 }, () => event({ actorId, ledgerId: actorId }));
      await log.append(events);
      await log.append(events);
      expect(await list(actorId)).toEqual(events);
      expect(await list(actorId, { ledgerId: actorId })).toEqual(events);
    });

    test('unordered events and ids without a time are refused as a whole', async () => {
      const actorId = randomUUID();
      const [first, second] = [event({ actorId }), event({ actorId })];
      await expect(log.append([second, first])).rejects.toThrow(RangeError);
      await expect(log.append([first, first])).rejects.toThrow(RangeError);
      await expect(log.append([first, event({ actorId, id: randomUUID() })])).rejects.toThrow(RangeError);
      await log.append([]);
      expect(await list(actorId)).toEqual([]);
    });

    test('events of many actors in concurrent appends are all listed', async () => {
      const actors = Array.from({ length: 300 }, () => randomUUID());
      const flushes = Array.from({ length: 5 }, () => actors.map((actorId) => event({ actorId, ledgerId: actorId })));
      await Promise.all(flushes.map((flush) => log.append(flush)));
      for (const actorId of actors) expect(await list(actorId, { ledgerId: actorId })).toHaveLength(5);
    });

    test('an event with an id before earlier ones is kept and listed', async () => {
      const actorId = randomUUID();
      const late = event({ actorId });
      now += 1000;
      const early = event({ actorId });
      await log.append([early]);
      await log.append([late]);
      expect(ids(await list(actorId)).sort()).toEqual([late.id, early.id]);
    });

    test('a sweep removes old events and no younger ones, also when it is repeated', async () => {
      const actorId = randomUUID();
      const days: AccessEvent[] = [];
      for (let day = 0; day <= 200; day++) {
        days.push(event({ actorId, ledgerId: actorId }));
        await log.append(days.slice(-1));
        now += DAY_MS;
      }
      const before = now - 90 * DAY_MS;
      expect(await log.sweep(0)).toBe(0);
      await log.sweep(before);
      expect(await log.sweep(before)).toBe(0);
      const kept = await list(actorId, { descending: true });
      const young = days.slice(-90).reverse();
      expect(kept.slice(0, 90)).toEqual(young);
      expect(kept.length).toBeLessThanOrEqual(90 + 15);
      expect(await list(actorId, { ledgerId: actorId, since: before, descending: true })).toEqual(young);
      log = await factory.reopen();
      expect(await list(actorId, { descending: true })).toEqual(kept);
    });

    test('events are kept after years without a sweep', async () => {
      const actorId = randomUUID();
      now += 1000 * DAY_MS;
      const one = event({ actorId });
      await log.append([one]);
      await log.sweep(now - 90 * DAY_MS);
      expect(await list(actorId)).toEqual([one]);
      now += 5000 * DAY_MS;
      const two = event({ actorId });
      await log.append([two]);
      expect(await list(actorId, { descending: true, limit: 1 })).toEqual([two]);
      expect(await list(actorId, { since: now })).toEqual([two]);
    });
  });
}
