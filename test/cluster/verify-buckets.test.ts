import { beforeAll, expect, test } from 'vitest';
import { environmentOf, suiteSettings, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { isNightly } from '../support/nightly.ts';
import { suiteDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import { keyspaceOfScenes } from './damage/keyspace.ts';
import { type Scene, type StoredScene, storedScene } from './damage/scene.ts';

/** A change to a full bucket in Cassandra, and what `cluster verify` finds. */
interface BucketDamage {
  readonly name: string;
  /** Resolves with a function that undoes the change. */
  readonly change: (stored: StoredScene) => Promise<() => Promise<unknown>>;
  /** The seqs of the findings, by type. */
  readonly found: Readonly<Record<string, readonly number[]>>;
}

/** The most events that a commit may have, so that a short ledger has three buckets. */
const smallBucketEvents = 64;
/**
 * Notes after the first copy, which has 14 events. The second copy begins with a batch across the end of bucket 0, and
 * continues with a batch across the end of bucket 1.
 */
const moreNotes = 140;
/** The last seqs of the two full buckets and of the ledger. */
const [bucket0Last, bucket1Last, ledgerLast] = [77, 141, 154];

const setStatic =
  (bucket: number, column: string, value: unknown) =>
  async ({ run, scene }: StoredScene) => {
    const key = [scene.order.ledgerId, bucket];
    const set = (to: unknown) =>
      run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = ?`, [to, ...key]);
    const before = await run(
      `SELECT ${column} AS it FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1`,
      key,
    );
    expect(before.first()?.it).not.toBeNull();
    await set(value);
    return () => set(before.first()?.it);
  };

const dropRow =
  (bucket: number, seq: number) =>
  async ({ run, scene }: StoredScene) => {
    const where = "ledger_id = ? AND bucket = ? AND scope = '' AND seq = ?";
    const place = [scene.order.ledgerId, bucket, seq];
    const before = await run(`SELECT row FROM ledger_event WHERE ${where}`, place);
    await run(`DELETE FROM ledger_event WHERE ${where}`, place);
    return () => run(`UPDATE ledger_event SET row = ? WHERE ${where}`, [before.first()?.row, ...place]);
  };

const bucketDamages: readonly BucketDamage[] = [
  { name: 'nothing', change: async () => async () => {}, found: {} },
  { name: 'its head set back', change: setStatic(0, 'head_seq', 40), found: { wrong_head: [bucket0Last] } },
  {
    name: 'its head set back within the batch across its end',
    change: setStatic(1, 'head_seq', 130),
    found: { wrong_head: [bucket1Last] },
  },
  { name: 'its head set forward', change: setStatic(0, 'head_seq', 140), found: { wrong_head: [bucket0Last] } },
  { name: 'its head taken away', change: setStatic(0, 'head_seq', null), found: { wrong_head: [bucket0Last] } },
  {
    name: 'its head’s hash changed',
    change: setStatic(1, 'head_hash', '1'.repeat(64)),
    found: { wrong_head: [bucket1Last] },
  },
  {
    name: 'its last row deleted',
    change: dropRow(0, bucket0Last),
    // The next event shows that the row is missing. The master still lists it.
    found: { missing_event: [bucket0Last + 1], wrong_head: [bucket0Last - 1], projection_extra: [bucket0Last] },
  },
];

await describeOnCassandra('cluster verify of a ledger of several buckets', (address) => {
  const settings = suiteSettings(address);
  const dataDir = suiteDir();
  let scene: Scene;
  beforeAll(async () => {
    const made = await keyspaceOfScenes(settings, dataDir, 1, { bucketEvents: smallBucketEvents, moreNotes });
    if (made[0] === undefined) throw new Error('no scene');
    scene = made[0];
  }, 120_000);

  const verify = async (which: string) => {
    const { code, out } = await runCli(environmentOf(settings), ['cluster', 'verify', '--json', which]);
    const { findings } = JSON.parse(out) as { findings: { seq: number; type: string; detail: string }[] };
    const found: Record<string, number[]> = {};
    for (const { type, seq } of findings) found[type] = [...(found[type] ?? []), seq];
    return { end: { code, found }, details: findings.map(({ detail }) => detail) };
  };
  const verifyDamaged = ({ change }: BucketDamage, which: string) =>
    withClient(settings, async (client) => {
      const undo = await change(storedScene(client, scene));
      try {
        return await verify(which);
      } finally {
        await undo();
      }
    });

  test('the ledger has three buckets, and batches across the ends of two of them', async () => {
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

  test.for(bucketDamages)('of a full bucket finds $name', async (damage) => {
    const wanted = { code: Object.keys(damage.found).length > 0 ? 1 : 0, found: damage.found };
    expect((await verifyDamaged(damage, scene.order.ledgerId)).end).toEqual(wanted);
    // In the ordinary run the damage with the most findings stands for all.
    if (isNightly || damage === bucketDamages.at(-1))
      expect((await verifyDamaged(damage, '--all')).end).toEqual(wanted);
  });

  test('reports a full bucket whose head was set back with its number and both ends', async () => {
    const setBack = bucketDamages.find(({ name }) => name === 'its head set back');
    if (setBack === undefined) throw new Error('no such damage');
    const { details } = await verifyDamaged(setBack, scene.order.ledgerId);
    expect(details).toEqual([expect.stringMatching(/^bucket 0 .* 77, .* 40/)]);
    expect((await verify('--all')).end).toEqual({ code: 0, found: {} });
  });
});
