import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import { keyText } from '../../src/store/cassandra/keys.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { entriesFor, newLedgerId } from '../support/store-entries.ts';
import { execute, suiteKeyspace } from './cassandra-factory.ts';

await describeOnCassandra('Values on Cassandra that no node has written', (address) => {
  const { settings, open } = suiteKeyspace(address);
  let stores: CassandraStores;
  beforeAll(async () => {
    stores = await open();
  });

  test('leave the store reachable, also those that the driver cannot encode', async () => {
    const tooLarge = { cql: 'INSERT INTO ledger (ledger_id, bucket) VALUES (?, ?)', params: ['k', 3_000_000_000] };
    for (let n = 0; n < 20; n++)
      await expect(stores.session.write([tooLarge])).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await stores.check();
  });

  test('make commands to their ledger fail as damaged, and no others', async () => {
    const [bad, good] = [await stores.ledgers.claim(newLedgerId()), await stores.ledgers.claim(newLedgerId())];
    await stores.ledgers.append(bad, entriesFor(bad, 3));
    const set = 'UPDATE ledger_event SET pending = ? WHERE ledger_id = ? AND bucket = 0 IF fence != ?';
    await execute(settings, set, ['[3000000000,["s"],[],[],[]]', keyText(bad.ledgerId), 'none']);
    const other = await open();
    for (let n = 0; n < 10; n++)
      await expect(other.ledgers.claim(bad.ledgerId)).rejects.toMatchObject({ code: 'internal' });
    await other.ledgers.append(await other.ledgers.claim(good.ledgerId), entriesFor(good, 3));
    expect(await other.ledgers.read(bad.ledgerId, 0, 10)).toHaveLength(3);
  });

  test('hide no access event, and are replaced by the next sweep', async () => {
    const [actorId, now] = [randomUUID(), Date.now()];
    const id = uuidV7(now, randomBytes(10));
    const fields = { apiKeyId: null, ledgerId: null, method: 'GET', path: '/', responseStatus: 200, requestId: 'r' };
    await stores.access.append([{ id, actorId, ...fields }]);
    const page = { ledgerId: null, since: now - 1_000, limit: 10, offset: 0, descending: true };
    const before = now - 90 * 24 * 60 * 60_000;
    for (const value of ['x', '600000', '999999999999999']) {
      await execute(settings, "INSERT INTO fact (name, value) VALUES ('access-kept-from-hour', ?)", [value]);
      expect(await stores.access.list(actorId, page)).toHaveLength(1);
      expect(await stores.access.sweep(before)).toBe(1);
      expect(await stores.facts.get('access-kept-from-hour')).toBe(String(Math.floor(before / 3_600_000)));
    }
  });
});
