import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import { type AccessEvent, accessKeptMs } from '../../../../src/store/access-log.ts';
import { formatAccessEvents } from '../../../../src/store/cassandra/access/access-block.ts';
import { CassandraAccessLog } from '../../../../src/store/cassandra/access/access-log.ts';
import { accessHour } from '../../../../src/store/cassandra/keys.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { blocksFor } from '../../../support/access-blocks.ts';

const nowMs = Date.UTC(2026, 10, 21);
const keptHour = accessHour(nowMs - accessKeptMs);
const page = { ledgerId: null, since: nowMs - accessKeptMs, limit: 10, offset: 0, descending: true };

function eventAt(ms: number): AccessEvent {
  const id = uuidV7(ms, Buffer.alloc(10, ms % 251));
  const fields = { apiKeyId: null, ledgerId: null, method: 'GET', path: '/', responseStatus: 200, requestId: 'r' };
  return { id, actorId: 'a', ...fields };
}

/** An actor with one hour of blocks, and the fact from which hour on events are shown (null for none). */
function history({ kept = null as string | null, blocks = [] as readonly Row[], hours = [accessHour(nowMs)] }) {
  const held = { kept };
  const session: CqlSession = {
    async read({ cql, params }): Promise<Row[]> {
      if (params.some((value) => typeof value === 'number' && value > 2 ** 31 - 1)) throw new RangeError('no int');
      if (cql.includes('FROM fact')) return held.kept === null ? [] : [{ value: held.kept }];
      if (cql.includes('FROM access_hour')) {
        const listed = hours.filter((hour) => hour >= Number(params[1]));
        const isDescending = cql.includes('DESC');
        const inOrder = listed
          .filter((hour) => !isDescending || hour <= Number(params[2]))
          .sort((a, b) => (isDescending ? b - a : a - b));
        return inOrder.slice(0, Number(params.at(-1))).map((hour) => ({ hour }));
      }
      return params[1] === accessHour(nowMs) ? blocksFor({ cql, params }, blocks) : [];
    },
    write: async () => {},
    async decide(statements) {
      const [to, , from] = statements[0]?.params ?? [];
      if (from !== held.kept) return { applied: false, row: { value: held.kept } };
      held.kept = String(to);
      return { applied: true, row: {} };
    },
  };
  return { log: new CassandraAccessLog(session, () => nowMs), held };
}

/** Its id is sound, whatever the events are. */
const blockOf = (...events: readonly AccessEvent[]): Row => ({
  first_id: eventAt(nowMs + 1).id,
  events: formatAccessEvents(events),
  count: events.length,
});
const sound = blockOf(eventAt(nowMs + 1), eventAt(nowMs + 2));

test.each(['x', '', '-5', '1e3', '999999999999999', '600000', String(accessHour(nowMs)), String(keptHour + 48)])(
  'the hour from which on events are shown counts as absent if it says "%s", and a sweep replaces it',
  async (kept) => {
    const { log, held } = history({ kept, blocks: [sound] });
    expect(await log.list('a', page)).toHaveLength(2);
    await log.sweep(nowMs - accessKeptMs);
    expect(held.kept).toBe(String(keptHour));
    expect(await log.sweep(nowMs - accessKeptMs)).toBe(0);
  },
);

test('an hour that another node has raised meanwhile is no hour of this sweep', async () => {
  const { log, held } = history({ kept: String(keptHour - 2) });
  expect(await log.sweep(nowMs - accessKeptMs)).toBe(2);
  held.kept = String(keptHour + 1);
  expect(await log.sweep(nowMs - accessKeptMs)).toBe(0);
});

test.each([
  ['a text that is a number', { path: 7 }],
  ['a text that is missing', { requestId: null }],
  ['an id of a key that is none', { apiKeyId: 7 }],
  ['a ledger that is an object', { ledgerId: {} }],
  ['a status that is a text', { responseStatus: 'many' }],
  ['a status that no int holds', { responseStatus: 1e12 }],
  ['a text that no UTF-8 is', { method: 'x\ud800' }],
  ['an id without a time', { id: '6b0f3b5e-8d0f-4c2f-9a51-6e0f3b5e8d0f' }],
])('a block with %s is left out of a page, and no other block', async (_, wrong) => {
  const damaged = blockOf({ ...eventAt(nowMs + 5), ...wrong } as AccessEvent);
  const { log } = history({ blocks: [damaged, sound] });
  expect(await log.list('a', page)).toHaveLength(2);
  expect(await log.list('a', { ...page, descending: false })).toHaveLength(2);
});

test.each([-1, 0, 33, 2 ** 31 - 1, null])('a count of %s events hides no event of its hour', async (count) => {
  const { log } = history({ blocks: [{ ...sound, count }] });
  expect(await log.list('a', { ...page, offset: 1 })).toHaveLength(1);
});

test('the last hour that the column holds ends a history', async () => {
  const hours = Array.from({ length: 16 }, (_, at) => 2 ** 31 - 16 + at);
  const { log } = history({ hours });
  expect(await log.list('a', { ...page, descending: false })).toEqual([]);
});

test.each([false, true])(
  'damaged ids of blocks hide no event, show none twice and end (descending: %s)',
  async (descending) => {
    const times = Array.from({ length: 700 }, (_, at) => nowMs + 10 * at);
    const blocks = times.map((ms, at): Row => {
      const { id } = eventAt(ms);
      // Every tenth, and all of the last second.
      return { ...blockOf(eventAt(ms)), first_id: at % 10 === 0 || at > 620 ? `${id.slice(0, 20)}x` : id };
    });
    const { log } = history({ blocks });
    const all = await log.list('a', { ...page, limit: 1_000, descending });
    expect(new Set(all.map(({ id }) => id)).size).toBe(700);
    expect(all).toHaveLength(700);
    expect(await log.list('a', { ...page, limit: 1_000, offset: 500, descending })).toHaveLength(200);
  },
);
