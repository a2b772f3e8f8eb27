import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { CassandraRecordStore } from '../../../../src/store/cassandra/records/record-store.ts';
import type { CqlSession } from '../../../../src/store/cassandra/session/session.ts';
import { faultySession } from '../../../support/cassandra-faults.ts';
import { settled } from '../../../support/clock.ts';

/** An empty store that takes everything, but for removals while `removalFails` says how they fail. */
function newStore() {
  const state = { removalFails: null as Error | null, removed: [] as unknown[] };
  const empty: CqlSession = {
    read: async () => [],
    async write(statements) {
      for (const { cql, params } of statements) {
        if (!cql.startsWith('DELETE FROM record_lookup')) continue;
        if (state.removalFails !== null) throw state.removalFails;
        state.removed.push(params[4]);
      }
    },
    decide: async () => ({ applied: true, row: {} }),
  };
  const faults = faultySession();
  const store = new CassandraRecordStore(faults.around(empty), randomBytes);
  const lookups = [{ name: 'n', value: 'v', order: 'o' }];
  const put = (id: string) => store.put({ kind: 'k', id, replaces: 'absent', value: '{}', lookups });
  return { state, faults, put };
}

test.each([
  ['unavailable', new LedgerError('unavailable', 'injected')],
  ['anything else', new TypeError('injected')],
])('index rows of an unsent put are removed by a later put if the removal fails by %s', async (_, failure) => {
  const { state, faults, put } = newStore();
  faults.failDecisions('unsent');
  await expect(put('given-up')).rejects.toThrow('injected');
  state.removalFails = failure;
  expect(await put('one')).toMatchObject({ ok: true });
  await settled();
  expect(state.removed).toEqual([]);
  state.removalFails = null;
  await put('two');
  await settled();
  await put('three');
  await settled();
  expect(state.removed).toEqual(['given-up']);
});
