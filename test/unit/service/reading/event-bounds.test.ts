import { expect, test } from 'vitest';
import { isoTime } from '../../../../src/domain/values/time.ts';
import { firstSeqAt } from '../../../../src/service/reading/event-bounds.ts';
import { append, createMaster, ledgerId, openLedger } from '../../../support/commands.ts';
import { storeOf } from '../../../support/event-lists.ts';
import { Chain, startMs } from '../../../support/world.ts';

const headSeq = 42;
const timeOf = (seq: number) => isoTime(startMs + seq * 1_000);
const seqs = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);

test.each<[string, readonly number[]]>([
  ['no row', []],
  ['the first row', [0]],
  ['one row', [20]],
  ['seven rows', seqs(17, 7)],
  ['twelve rows', seqs(14, 12)],
  ['the newest rows', seqs(38, 5)],
])('the first event from a time on is found where %s is damaged', async (_, damaged) => {
  const chain = new Chain();
  for (const command of [openLedger(), createMaster(), ...Array.from({ length: headSeq }, () => append())]) {
    const { length } = chain.events;
    if (length <= headSeq) chain.run(command, timeOf(length));
  }
  const store = await storeOf(chain);
  const ledgers = {
    read: async (...given: Parameters<typeof store.read>) =>
      (await store.read(...given)).map((entry) => (damaged.includes(entry.seq) ? { ...entry, row: '{' } : entry)),
  };
  for (let sought = 3; sought <= headSeq + 1; sought += 1) {
    for (const fromSeq of [0, 5, headSeq]) {
      const found = await firstSeqAt(ledgers, ledgerId, headSeq, (time) => time >= timeOf(sought), fromSeq);
      const expected = Math.max(sought, fromSeq);
      // It may begin too early, but only with events whose time cannot be read.
      expect(seqs(found, expected - found).filter((seq) => !damaged.includes(seq))).toEqual([]);
      expect(found).toBeLessThanOrEqual(expected);
    }
  }
});
