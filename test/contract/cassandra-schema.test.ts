import { randomBytes } from 'node:crypto';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { applySchema as applyFromCommandLine } from '../../src/cli/commands/schema.ts';
import { StartError } from '../../src/runtime/start-error.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import { applySchema } from '../../src/store/cassandra/schema/apply-schema.ts';
import { checkDataCenters } from '../../src/store/cassandra/session/server-checks.ts';
import type { CassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import {
  environmentOf,
  execute,
  leaveKeyspace,
  makeKeyspace,
  newKeyspace,
  suiteSettings,
} from './cassandra-factory.ts';

await describeOnCassandra('The schema on Cassandra', (address) => {
  const replication = new Map([[address.localDataCenter, 1]]);

  /** A keyspace of this version, which no test changes. */
  const ready = suiteSettings(address);
  beforeAll(async () => void (await makeKeyspace(ready)));

  function keyspace(): CassandraSettings {
    const settings = newKeyspace(address);
    onTestFinished(() => leaveKeyspace(settings));
    return settings;
  }
  async function open(settings: CassandraSettings): Promise<void> {
    const stores = await openCassandra({ settings, now: Date.now, random: randomBytes });
    await stores[Symbol.asyncDispose]();
  }
  /** As another version of the service has left it. */
  const storeVersion = (settings: CassandraSettings, version: string) =>
    execute(settings, "UPDATE fact SET value = ? WHERE name = 'schema-version' IF value = '2'", [version]);
  const tablesOf = (settings: CassandraSettings) =>
    execute({ ...settings, keyspace: 'system' }, 'SELECT * FROM system_schema.tables WHERE keyspace_name = ?', [
      settings.keyspace,
    ]);
  /** The one sentence that an operator reads. */
  async function refusal(work: Promise<unknown>): Promise<string> {
    const error = await work.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StartError);
    return error instanceof Error ? error.message : '';
  }

  test('is applied again without a change', async () => {
    const told = await makeKeyspace(ready);
    expect(told).toContain('schema-version 2');
    expect(await makeKeyspace(ready)).toBe(told);
    await open(ready);
  });

  test('expires access histories in files of a week', async () => {
    const tables = await tablesOf(ready);
    const weekly = tables.filter(({ table_name }) => String(table_name).startsWith('access_'));
    expect(weekly.map(({ table_name }) => table_name)).toEqual(['access_block', 'access_hour']);
    for (const { default_time_to_live, compaction } of weekly) {
      // Access history is kept for 90 days, and no file may expire that holds what may still be read.
      expect(default_time_to_live).toBe(98 * 24 * 60 * 60);
      expect(compaction).toMatchObject({
        class: expect.stringMatching(/TimeWindowCompactionStrategy$/),
        compaction_window_unit: 'DAYS',
        compaction_window_size: '7',
      });
    }
    const others = tables.filter((table) => !weekly.includes(table));
    expect(new Set(others.map((table) => table.default_time_to_live))).toEqual(new Set([0]));
  });

  test('is never made by a node, which fails without it', async () => {
    const settings = keyspace();
    expect(await refusal(open(settings))).toContain('run `ledger-trust schema apply`');
    await execute(
      { ...settings, keyspace: 'system' },
      `CREATE KEYSPACE ${settings.keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${settings.localDataCenter}': 1}`,
    );
    expect(await refusal(open(settings))).toContain('run `ledger-trust schema apply`');
    expect(await tablesOf(settings)).toEqual([]);
  });

  test('of a newer version is refused by nodes and by the command', async () => {
    const settings = keyspace();
    await makeKeyspace(settings);
    await storeVersion(settings, '3');
    await execute(settings, 'DROP TABLE snapshot');
    for (const work of [() => open(settings), () => makeKeyspace(settings)])
      expect(await refusal(work())).toMatch(/has schema version 3, .* knows 2: a newer one was here; start that one/);
    expect((await tablesOf(settings)).map(({ table_name }) => table_name)).not.toContain('snapshot');
  });

  test('of an older version is refused by nodes and migrated by the command', async () => {
    const settings = keyspace();
    await makeKeyspace(settings);
    await storeVersion(settings, '0');
    await execute(settings, 'DROP TABLE snapshot');
    expect(await refusal(open(settings))).toMatch(
      /has schema version 0, .* needs 2: run its `ledger-trust schema apply`/,
    );
    expect(await refusal(applySchema(settings, { random: randomBytes, replication, shardCount: 8 }))).toContain(
      'shard-count 4, not 8',
    );
    expect(await refusal(open(settings))).toContain('has schema version 0');
    const told = await Promise.all([makeKeyspace(settings), makeKeyspace(settings)]);
    for (const sentence of told) expect(sentence).toContain('schema-version 2');
    await open(settings);
    await execute(settings, 'SELECT * FROM snapshot');
  });

  test('of version 1 gets the tables of the trees and an id, which stays, and keeps its data', async () => {
    const settings = keyspace();
    await makeKeyspace(settings);
    await storeVersion(settings, '1');
    await execute(settings, "DELETE FROM fact WHERE name = 'keyspace-id' IF EXISTS");
    for (const table of ['tile', 'tile_hash', 'signed_head']) await execute(settings, `DROP TABLE ${table}`);
    await execute(settings, "INSERT INTO cell (key, version, value) VALUES ('k', 3, 'v')");
    expect(await refusal(open(settings))).toMatch(
      /has schema version 1, .* needs 2: run its `ledger-trust schema apply`/,
    );
    await makeKeyspace(settings);
    const idOf = async () => {
      const [row] = await execute(settings, "SELECT value FROM fact WHERE name = 'keyspace-id'");
      return String(row?.value);
    };
    const id = await idOf();
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const stores = await openCassandra({ settings, now: Date.now, random: randomBytes });
    await stores.tiles.putHashes('origin', 1, 0, [Buffer.alloc(32, 1)]);
    await stores.signedHeads.raise('origin', 1, Buffer.alloc(32, 1));
    expect(await stores.ledgers.cell('k')).toEqual({ version: 3, value: 'v' });
    await stores[Symbol.asyncDispose]();
    await Promise.all([makeKeyspace(settings), makeKeyspace(settings)]);
    expect(await idOf()).toBe(id);
    const [row] = await execute(ready, "SELECT value FROM fact WHERE name = 'keyspace-id'");
    expect(row?.value).not.toBe(id);
  });

  test('keeps its shard count, bucket size and replication', async () => {
    expect(await refusal(applySchema(ready, { random: randomBytes, replication, shardCount: 8 }))).toContain(
      'shard-count 4, not 8',
    );
    expect(await refusal(makeKeyspace(ready, 16))).toContain('bucket-events 1024, not 16');
    const three = new Map([[address.localDataCenter, 3]]);
    expect(await refusal(applySchema(ready, { random: randomBytes, replication: three, shardCount: 4 }))).toContain(
      'ALTER KEYSPACE',
    );
    const stores = await openCassandra({ settings: ready, now: Date.now, random: randomBytes });
    expect(await stores.facts.get('shard-count')).toBe('4');
    expect(await stores.facts.agree('secrets-key', 'a')).toBe('a');
    expect(await stores.facts.agree('secrets-key', 'b')).toBe('a');
    await stores[Symbol.asyncDispose]();
  });

  test('with a fact that no command has stored is refused by nodes and by the command', async () => {
    const settings = keyspace();
    await makeKeyspace(settings);
    const change = (name: string, value: string) =>
      execute(settings, 'UPDATE fact SET value = ? WHERE name = ? IF EXISTS', [value, name]);
    for (const count of ['300000000', '65537', '0', '1e3']) {
      await change('shard-count', count);
      const stores = await openCassandra({ settings, now: Date.now, random: randomBytes });
      expect(await refusal(stores.shardCount())).toMatch(/row shard-count of table fact .* restore it from a backup/);
      await stores[Symbol.asyncDispose]();
    }
    expect(await refusal(makeKeyspace(settings))).toMatch(/row shard-count .* is damaged \(it says "1e3"\)/);
    await change('schema-version', 'x');
    for (const work of [() => open(settings), () => makeKeyspace(settings)])
      expect(await refusal(work())).toMatch(/row schema-version .* is damaged \(it says "x"\): restore it/);
  });

  test('is not applied to an unknown data centre', async () => {
    const settings = keyspace();
    const elsewhere = new Map([['elsewhere', 1]]);
    expect(
      await refusal(applySchema(settings, { random: randomBytes, replication: elsewhere, shardCount: 4 })),
    ).toContain('elsewhere');
  });

  test('is not applied with more replicas than nodes, and can then be applied with fewer', async () => {
    const settings = keyspace();
    const nine = new Map([[address.localDataCenter, 9]]);
    const told = await refusal(
      applySchema(settings, { random: randomBytes, replication: nine, shardCount: 4, joinedMaxMs: 1_000 }),
    );
    expect(told).toContain(`--replication ${address.localDataCenter}:`);
    expect(await makeKeyspace(settings)).toContain('shard-count 4');
  });

  test('is applied by the command line with the settings of the environment', async () => {
    const settings = keyspace();
    const env = environmentOf(settings);
    expect(await applyFromCommandLine(env, { replication: `${address.localDataCenter}:1`, shards: '16' })).toBe(
      `Keyspace ${settings.keyspace} is ready: shard-count 16, bucket-events 1024, schema-version 2.`,
    );
    for (const wrong of ['3', 'dc', 'dc:0', 'dc:x', "dc'1:3", 'dc:3,'])
      await refusal(applyFromCommandLine(env, { replication: wrong }));
    for (const shards of ['0', '-1', 'x', '99999999']) await refusal(applyFromCommandLine(env, { shards }));
  });

  test('uses SERIAL and QUORUM over two data centres', () => {
    const settings = newKeyspace(address);
    expect(() => checkDataCenters(['datacenter1', 'dc2'], settings)).toThrow('CASSANDRA_CONSISTENCY=global');
    checkDataCenters(['datacenter1', 'dc2'], { ...settings, reach: 'global', localDataCenter: 'dc2' });
    expect(() => checkDataCenters(['dc2'], { ...settings, localDataCenter: 'dc1' })).toThrow('CASSANDRA_DATA_CENTER');
  });

  test('an address at which nobody answers is refused with one sentence', async () => {
    const nobody = { ...newKeyspace(address), contactPoints: ['127.0.0.1:1'] };
    expect(await refusal(open(nobody))).toContain('cannot be reached at 127.0.0.1:1');
  });
});
