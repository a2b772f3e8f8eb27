import type cassandra from 'cassandra-driver';
import { beforeAll, expect, test } from 'vitest';
import { names } from '../../src/domain/event/projection.ts';
import { environmentOf, suiteSettings, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { suiteDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import { keyspaceOfScenes } from './damage/keyspace.ts';
import { type Scene, type StoredScene, storedScene } from './damage/scene.ts';

/** The projections, without their times of writing. */
const lookedUp = [
  'SELECT key, version, value FROM cell',
  'SELECT list, line_order, value FROM line',
  'SELECT ledger_id, scope, bucket FROM scope_bucket',
  'SELECT ledger_id, id, seq, fingerprint FROM command',
];

async function projectionsIn(client: cassandra.Client): Promise<string[]> {
  const found: string[] = [];
  for (const cql of lookedUp)
    for (const row of (await client.execute(cql, [], { fetchSize: 5_000 })).rows)
      found.push(`${cql}: ${JSON.stringify(row.values().map(String))}`);
  return found.sort();
}

/** Returns the seqs of a scope in bucket 0. */
async function seqsUnder(client: cassandra.Client, ledgerId: string, scope: string): Promise<number[]> {
  const cql = 'SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ?';
  const { rows } = await client.execute(cql, [ledgerId, scope], { prepare: true });
  return rows.flatMap(({ row }) => String(row).split(' ').map(Number));
}

await describeOnCassandra('cluster verify --finish', (address) => {
  const settings = suiteSettings(address);
  const env = environmentOf(settings);
  const dataDir = suiteDir();
  let scenes: readonly Scene[] = [];
  let before: readonly string[] = [];
  const verify = async (...args: string[]) => {
    const { code, out, err } = await runCli(env, ['cluster', 'verify', '--all', '--json', ...args]);
    expect(err).toBe('');
    const told = JSON.parse(out) as {
      findings: { ledger_id: string; type: string; detail: string; remedy: string }[];
      projections_written: number;
    };
    return { code, ...told, types: new Set(told.findings.map(({ type }) => type)) };
  };

  beforeAll(async () => {
    scenes = await keyspaceOfScenes(settings, dataDir, 2);
    expect(await verify()).toMatchObject({ code: 0, findings: [], projections_written: 0 });
  }, 120_000);

  /** Empties the tables as a restore without them does: no tombstones remain. */
  const loseAll = (client: cassandra.Client) =>
    Promise.all(
      ['cell', 'line', 'scope_bucket', 'command'].map((table) =>
        client.execute(`TRUNCATE ${table}`, [], { readTimeout: 30_000 }),
      ),
    );

  test('writes all missing rows beside the logs, and nothing when it is repeated', async () => {
    await withClient(settings, async (client) => {
      before = await projectionsIn(client);
      expect(before.length).toBeGreaterThan(0);
      await loseAll(client);
      const [first] = scenes;
      if (first === undefined) throw new Error('no scene');
      const { order, master } = first;
      const scope = names.masterEvents(master.uuid);
      const seqs = await seqsUnder(client, order.ledgerId, scope);
      expect(seqs.length).toBeGreaterThan(10);
      await client.execute(
        'DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ?',
        [order.ledgerId, scope],
        { prepare: true },
      );

      const finished = await verify('--finish');
      expect(finished).toMatchObject({ code: 0, verdict: 'good', findings: [] });
      expect(finished.projections_written).toBeGreaterThan(0);
      expect(await verify('--finish')).toMatchObject({ code: 0, findings: [], projections_written: 0 });
      expect(await projectionsIn(client)).toEqual(before);
      expect((await seqsUnder(client, order.ledgerId, scope)).sort((a, b) => a - b)).toEqual(seqs);
    });
  }, 60_000);

  const inBucket1 = 'ledger_event (ledger_id, bucket, head_seq, head_hash) VALUES (?, 1, 1030, ?)';
  test.for<[name: string, damage: (stored: StoredScene) => Promise<() => Promise<unknown>>]>([
    [
      'has an event that was changed',
      async ({ row, setRow }) => {
        const whole = await row(6);
        await setRow(6, whole.replace('"n":2', '"n":7'));
        return () => setRow(6, whole);
      },
    ],
    [
      'goes on behind its end',
      async ({ run, scene: { order } }) => {
        await run(`INSERT INTO ${inBucket1}`, [order.ledgerId, '1'.repeat(64)]);
        return () => run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 1', [order.ledgerId]);
      },
    ],
  ])('writes nothing for a log that %s', async ([, damage]) => {
    const [healthy, damaged] = scenes;
    if (healthy === undefined || damaged === undefined) throw new Error('no scene');
    await withClient(settings, async (client) => {
      await loseAll(client);
      const undo = await damage(storedScene(client, damaged));
      const { code, findings } = await verify('--finish');
      expect(code).toBe(1);
      expect(new Set(findings.map(({ ledger_id }) => ledger_id))).toEqual(new Set([damaged.order.ledgerId]));
      const masters = async ({ order }: Scene) => {
        const cql = 'SELECT list FROM line WHERE list = ?';
        return (await client.execute(cql, [names.mastersOf(order.ledgerId)])).rowLength;
      };
      expect([await masters(healthy), await masters(damaged)]).toEqual([2, 0]);

      await undo();
      expect(await verify('--finish')).toMatchObject({ code: 0, findings: [] });
      expect(await projectionsIn(client)).toEqual(before);
    });
  });

  test('leaves wrong rows as they are and writes missing ones beside them', async () => {
    const [scene] = scenes;
    if (scene === undefined) throw new Error('no scene');
    const key = names.master(scene.master.uuid);
    await withClient(settings, async (client) => {
      const wrong = '{"masterId":"x"}';
      await client.execute('UPDATE cell SET value = ? WHERE key = ?', [wrong, key], { prepare: true });
      await client.execute('TRUNCATE line', [], { readTimeout: 30_000 });
      const { code, types, projections_written } = await verify('--finish');
      expect({ code, types }).toEqual({
        code: 1,
        types: new Set(['projection_wrong', 'projection_extra', 'wrong_writetime']),
      });
      expect(projections_written).toBeGreaterThan(0);
      const stored = await client.execute('SELECT value FROM cell WHERE key = ?', [key]);
      expect(stored.first()?.value).toBe(wrong);
    });
  }, 60_000);

  test('a cell that was written again as it stands is mended as its finding says', { timeout: 120_000 }, async () => {
    const [scene] = scenes;
    if (scene === undefined) throw new Error('no scene');
    const key = names.master(scene.master.uuid);
    await withClient(settings, async (client) => {
      const run = (cql: string, ...values: readonly unknown[]) => client.execute(cql, [...values], { prepare: true });
      await loseAll(client);
      expect(await verify('--finish')).toMatchObject({ code: 0 });
      const stored = (await run('SELECT version, value FROM cell WHERE key = ?', key)).first();
      await run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', key, stored?.version, stored?.value);
      const { findings } = await verify();
      expect(findings).toMatchObject([{ type: 'wrong_writetime', table: 'cell', key: `key=${key}` }]);
      const [, written = ''] = /value at (\d+)/.exec(findings[0]?.detail ?? '') ?? [];
      expect(findings[0]?.remedy).toContain('USING TIMESTAMP and the time that it has');
      await run('DELETE FROM cell USING TIMESTAMP ? WHERE key = ?', written, key);
      const deleted = await verify('--finish');
      expect(deleted.types).toEqual(new Set(['projection_missing']));
      expect(deleted.findings[0]?.remedy).toContain('Cells that are dated wrongly');
      // As `nodetool flush` and `nodetool compact`.
      const compaction = "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}";
      const options = `gc_grace_seconds = 0 AND memtable_flush_period_in_ms = 100 AND compaction = ${compaction}`;
      await client.execute(`ALTER TABLE cell WITH ${options}`, [], { readTimeout: 30_000 });
      await expect.poll(() => verify('--finish'), { timeout: 100_000 }).toMatchObject({ code: 0, findings: [] });
      expect(await projectionsIn(client)).toEqual(before);
    });
  });
});
