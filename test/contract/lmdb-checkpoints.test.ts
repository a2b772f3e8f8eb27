import { expect, test } from 'vitest';
import { parseRow } from '../../src/domain/event/row.ts';
import { BehindLogs } from '../../src/service/log-identity/behind-logs.ts';
import { ledgerId } from '../support/commands.ts';
import { checkNotes, checkProofs, type Note, neighbours } from '../support/history/notes-check.ts';
import { isNightly } from '../support/nightly.ts';
import { checkpointsOver } from '../support/proofs-rig.ts';
import { killPoints, notesIn, signedChain } from '../support/store-lmdb-checkpoints.ts';
import { startChild } from '../support/store-lmdb-process.ts';
import { newDataDir, openDir } from './lmdb-factory.ts';

/** At which raise of its own each process is killed. */
const raises = isNightly ? [1, 2, 3, 4, 5, 6] : [3];

test('checkpoints of processes killed around a raise never contradict, and the next process goes on', async () => {
  const dataDir = await newDataDir();
  const notes: Note[] = [];
  for (const count of raises)
    for (const point of killPoints) {
      const name = `${point} raise ${count}`;
      await using child = startChild(['checkpoints', dataDir, point, `${count}`]);
      await child.ended();
      const given = notesIn(child.lines, name);
      const others = child.lines.filter((line) => !line.startsWith('note '));
      expect(others, name).toEqual(['kill']);
      // Every raise but the last one was followed by a checkpoint.
      expect(given.length, name).toBeGreaterThanOrEqual(count - 1);
      notes.push(...given);
      await expectHeadsOf(notes, dataDir);
    }
  await using stores = await openDir(dataDir);
  const era = new Map([[ledgerId, signedChain.map(({ row }) => parseRow(row))]]);
  expect(checkNotes(notes, [era])).toEqual([]);
  const pairs = neighbours(notes);
  expect(pairs.length).toBeGreaterThan(0);
  const logs = checkpointsOver(stores.ledgers, stores.tiles, stores.signedHeads, new BehindLogs(false));
  expect(await checkProofs(pairs, logs)).toEqual([]);
}, 120_000);

/** What was signed is never above the signed head that the next process finds. */
async function expectHeadsOf(notes: readonly Note[], dataDir: string): Promise<void> {
  await using stores = await openDir(dataDir);
  const { signedHeads } = stores;
  for (const [origin, given] of Map.groupBy(notes, (note) => note.origin)) {
    const head = await signedHeads.get(origin);
    expect(head?.size).toBeGreaterThanOrEqual(Math.max(...given.map(({ size }) => size)));
  }
}
