import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import { environmentOf, leaveKeyspace, newKeyspace, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { temporaryDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import {
  type BucketDamage,
  bucket0Last,
  bucket1Last,
  bucketDamages,
  ledgerLast,
  moreNotes,
  smallBucketEvents,
} from './damage/bucket-damages.ts';
import { keyspaceOfScenes } from './damage/keyspace.ts';
import { type Scene, stand } from './damage/scene.ts';

await describeOnCassandra('cluster verify of a ledger of several buckets', (address) => {
  const settings: CassandraSettings = newKeyspace(address);
  const dataDir = temporaryDir();
  let scene: Scene;
  beforeAll(async () => {
    const made = await keyspaceOfScenes(settings, dataDir, 1, { bucketEvents: smallBucketEvents, moreNotes });
    if (made[0] === undefined) throw new Error('no scene');
    scene = made[0];
  }, 120_000);
  afterAll(async () => {
    rmSync(dataDir, { recursive: true, force: true });
    await leaveKeyspace(settings);
  });

  const verify = async (which: string) => {
    const { code, out } = await runCli(environmentOf(settings), ['cluster', 'verify', '--json', which]);
    const { findings } = JSON.parse(out) as { findings: { seq: number; type: string; detail: string }[] };
    const found: Record<string, number[]> = {};
    for (const { type, seq } of findings) found[type] = [...(found[type] ?? []), seq];
    return { end: { code, found }, details: findings.map(({ detail }) => detail) };
  };
  const verifyDamaged = ({ change }: BucketDamage, which: string) =>
    withClient(settings, async (client) => {
      const takeBack = await change(stand(client, scene));
      try {
        return await verify(which);
      } finally {
        await takeBack();
      }
    });

  test('the ledger lies in three buckets, two of which batches have run over', async () => {
    const rows = await withClient(settings, (client) =>
      client.execute(
        "SELECT bucket, max(seq) AS last FROM ledger_event WHERE scope = '' AND ledger_id = ? AND bucket IN (0, 1, 2, 3) GROUP BY ledger_id, bucket",
        [scene.order.ledgerId],
        { prepare: true },
      ),
    );
    expect(rows.rows.map(({ bucket, last }) => [bucket, Number(last)])).toEqual([
      [0, bucket0Last],
      [1, bucket1Last],
      [2, ledgerLast],
    ]);
  });

  test.for(bucketDamages)('of a full bucket finds: $name', async (damage) => {
    const wanted = { code: Object.keys(damage.found).length > 0 ? 1 : 0, found: damage.found };
    expect((await verifyDamaged(damage, scene.order.ledgerId)).end).toEqual(wanted);
    expect((await verifyDamaged(damage, '--all')).end).toEqual(wanted);
    expect((await verify(scene.order.ledgerId)).end).toEqual({ code: 0, found: {} });
  });

  test('a full bucket whose head was set back is told by its number, and by both its ends', async () => {
    const setBack = bucketDamages.find(({ name }) => name === 'its head set back');
    if (setBack === undefined) throw new Error('no such damage');
    const { details } = await verifyDamaged(setBack, scene.order.ledgerId);
    expect(details).toEqual([expect.stringMatching(/^bucket 0 .* 77, .* 40/)]);
  });
});
