import { expect } from 'vitest';
import type { Stand } from './scene.ts';

/** A change to a full bucket in Cassandra, and what `cluster verify` finds. */
export interface BucketDamage {
  readonly name: string;
  /** Resolves with a function that undoes the change. */
  readonly change: (stand: Stand) => Promise<() => Promise<unknown>>;
  /** The seqs of the findings, by type. */
  readonly found: Readonly<Record<string, readonly number[]>>;
}

/** The most events that a commit may have, so that a short ledger has three buckets. */
export const smallBucketEvents = 64;
/**
 * Notes after the first copy, which has 14 events. The second copy begins with a batch across the end of bucket 0, and
 * continues with a batch across the end of bucket 1.
 */
export const moreNotes = 140;
/** The last seqs of the two full buckets and of the ledger. */
export const [bucket0Last, bucket1Last, ledgerLast] = [77, 141, 154];

const setStatic =
  (bucket: number, column: string, value: unknown) =>
  async ({ run, scene }: Stand) => {
    const key = [scene.order.ledgerId, bucket];
    const set = (to: unknown) =>
      run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = ?`, [to, ...key]);
    const stood = await run(`SELECT ${column} AS it FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1`, key);
    expect(stood.first()?.it).not.toBeNull();
    await set(value);
    return () => set(stood.first()?.it);
  };

const dropRow =
  (bucket: number, seq: number) =>
  async ({ run, scene }: Stand) => {
    const where = "ledger_id = ? AND bucket = ? AND scope = '' AND seq = ?";
    const place = [scene.order.ledgerId, bucket, seq];
    const stood = await run(`SELECT row FROM ledger_event WHERE ${where}`, place);
    await run(`DELETE FROM ledger_event WHERE ${where}`, place);
    return () => run(`UPDATE ledger_event SET row = ? WHERE ${where}`, [stood.first()?.row, ...place]);
  };

export const bucketDamages: readonly BucketDamage[] = [
  { name: 'nothing', change: async () => async () => {}, found: {} },
  { name: 'its head set back', change: setStatic(0, 'head_seq', 40), found: { wrong_head: [bucket0Last] } },
  {
    name: 'its head set back behind where the next one begins',
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
