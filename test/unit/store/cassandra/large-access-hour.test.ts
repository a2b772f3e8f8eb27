import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { AccessEvent } from '../../../../src/store/access-log.ts';
import { CassandraAccessLog } from '../../../../src/store/cassandra/access/access-log.ts';
import { accessHourMs } from '../../../../src/store/cassandra/keys.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { blocksFor } from '../../../support/access-blocks.ts';

/** The first hours of 1970 hold all events of the actor. */
function history(hours = 1) {
  const blocks: Row[] = [];
  let [reads, blocksRead, rowsRead, examined] = [0, 0, 0, 0];
  const session: CqlSession = {
    async read({ cql, params }): Promise<Row[]> {
      if (cql.includes('FROM fact')) return [];
      if (cql.includes('FROM access_hour')) {
        const listed = Array.from({ length: hours }, (_, hour) => ({ hour }));
        return cql.includes('DESC') ? listed.reverse() : listed;
      }
      const rows = blocksFor({ cql, params }, blocks);
      reads += 1;
      rowsRead += rows.length;
      if (cql.includes('events FROM')) blocksRead += rows.length;
      return rows;
    },
    async write(statements) {
      for (const { cql, params } of statements) {
        const [, , ledger, first_id, count, events] = params;
        if (cql.includes('access_block') && ledger === '') blocks.push({ first_id, count, events } as Row);
      }
    },
    decide: async () => ({ applied: true, row: {} }),
  };
  const log = new CassandraAccessLog(session, () => 0);
  const eventAt = (ms: number): AccessEvent => {
    const fields = { apiKeyId: null, ledgerId: null, method: 'GET', path: '/', responseStatus: 200 };
    return { id: uuidV7(ms, Buffer.alloc(10, ms % 251)), actorId: 'a', ...fields, requestId: String(ms) };
  };
  const reading = {
    signal: new AbortController().signal,
    examined(count: number) {
      examined += count;
    },
  };
  const page = async (offset: number, limit: number, descending: boolean, since = 0) => {
    const events = await log.list('a', { ledgerId: null, since, limit, offset, descending }, reading);
    return events.map(({ requestId }) => Number(requestId));
  };
  /** Since the last call of this. */
  const seen = () => {
    const counted = { reads, blocksRead, rowsRead, examined };
    [reads, blocksRead, rowsRead, examined] = [0, 0, 0, 0];
    return counted;
  };
  return { append: (times: readonly number[]) => log.append(times.map(eventAt)), page, seen };
}

test('a page of an hour with many blocks is right, reads few of them, and tells what it looked at', async () => {
  const { append, page, seen } = history();
  const times: number[] = [];
  // Some blocks begin before the end of a second, of ten seconds, of a minute, and would end after it.
  for (let ms = 0; ms < accessHourMs; ms += 270) times.push(ms);
  for (let at = 0; at < times.length; at += 3) await append(times.slice(at, at + 3));
  const offsets = [0, 1, 222, 5_000, times.length - 3, times.length];
  for (const offset of offsets) {
    for (const [descending, sorted] of [
      [false, times],
      [true, times.toReversed()],
    ] as const) {
      expect(await page(offset, 40, descending)).toEqual(sorted.slice(offset, offset + 40));
      const { reads, blocksRead, rowsRead, examined } = seen();
      expect(blocksRead).toBeLessThan(2 * 257);
      expect(reads).toBeLessThan(4);
      expect(examined).toBeGreaterThanOrEqual(rowsRead);
      expect(examined).toBeLessThan(rowsRead + 2 * 257 * 3);
    }
  }
  const since = 1_234_567;
  const young = times.filter((ms) => ms >= since);
  expect(await page(0, 40, false, since)).toEqual(young.slice(0, 40));
  expect(seen().reads).toBe(1);
  expect(await page(3, 40, false, since)).toEqual(young.slice(3, 43));
  expect(await page(young.length - 2, 40, true, since)).toEqual(young.toReversed().slice(-2));
});

test('events of a second are read together however many they are', async () => {
  const { append, page } = history();
  const times = Array.from({ length: 600 }, (_, at) => 5_000 + at);
  for (const ms of times) await append([ms]);
  expect(await page(0, 1_000, false)).toEqual(times);
  expect(await page(590, 100, true)).toEqual(times.slice(0, 10).reverse());
});

test('pages of several large hours, with a large second in between, follow one another', async () => {
  const { append, page } = history(2);
  const everyMs = (step: number, fromMs: number, untilMs: number) =>
    Array.from({ length: Math.floor((untilMs - fromMs) / step) }, (_, at) => fromMs + at * step);
  const burstMs = accessHourMs / 2;
  const times = [
    ...everyMs(700, 0, burstMs),
    ...everyMs(1, burstMs, burstMs + 700),
    ...everyMs(900, burstMs + 1_000, 2 * accessHourMs),
  ];
  for (const ms of times) await append([ms]);
  for (const [descending, sorted] of [
    [false, times],
    [true, times.toReversed()],
  ] as const)
    for (let offset = 0; offset < times.length; offset += 311)
      expect(await page(offset, 311, descending)).toEqual(sorted.slice(offset, offset + 311));
});
