import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraRecordStore } from '../../../../src/store/cassandra/records/record-store.ts';
import type { CqlSession } from '../../../../src/store/cassandra/session/session.ts';

/** A store of one record, whose reads answer with the record of their beginning, once the test lets them. */
function heldStore() {
  const state = { version: 'v1', reads: 0, answer: Promise.resolve() };
  const session: CqlSession = {
    async read() {
      state.reads += 1;
      const rows = [{ version: state.version, value: '{}' }];
      await state.answer;
      return rows;
    },
    write: async () => {},
    decide: async () => ({ applied: true, row: {} }),
  };
  const store = new CassandraRecordStore(session, randomBytes);
  const put = (replaces: string) => store.put({ kind: 'k', id: 'one', replaces, value: '{}', lookups: [] });
  return { state, put };
}

test('a put that is called while another one reads does not get the older record of that read', async () => {
  const { state, put } = heldStore();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.answer = promise;
  const stale = put('v0');
  state.version = 'v2';
  const right = put('v2');
  resolve();
  expect(await stale).toMatchObject({ ok: false, current: { version: 'v1' } });
  expect(await right).toMatchObject({ ok: true });
});

test('puts that wait together and are refused share a read', async () => {
  const { state, put } = heldStore();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.answer = promise;
  const refused = Array.from({ length: 10 }, () => put('v0'));
  resolve();
  for (const one of await Promise.all(refused)) expect(one).toMatchObject({ ok: false, current: { version: 'v1' } });
  expect(state.reads).toBe(2);
});
