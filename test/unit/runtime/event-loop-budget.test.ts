import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { EventLoopBudget } from '../../../src/runtime/limits/event-loop-budget.ts';

/** Reads of so many pieces each, all begun at once: whose pieces were read in each turn of the event loop. */
async function readersByTurn(reads: number, pieces: number, pieceChars: number): Promise<number[][]> {
  const share = new EventLoopBudget();
  const byTurn: number[][] = [[]];
  const readAll = async (reader: number) => {
    for (let piece = 0; piece < pieces; piece++) {
      const turn = share.whenFree();
      if (turn !== null) await turn;
      share.use(0, pieceChars);
      byTurn.at(-1)?.push(reader);
    }
  };
  const all = Array.from({ length: reads }, (_, reader) => readAll(reader));
  byTurn.push([]);
  while (byTurn.flat().length < reads * pieces) {
    await setImmediate();
    byTurn.push([]);
  }
  await Promise.all(all);
  return byTurn.filter((readers) => readers.length > 0);
}

const countOf = (readers: readonly number[]) => readers.length;

test('however many long reads there are, a turn of the event loop has one share of them', async () => {
  const byTurn = await readersByTurn(6, 20, 100_000);
  expect(byTurn.slice(0, -1).map(countOf)).toEqual(byTurn.slice(0, -1).map(() => 3));
});

test('a piece that is larger than the share has a turn for itself, and reads take turns', async () => {
  const byTurn = await readersByTurn(3, 4, 1_000_000);
  expect(byTurn).toEqual([0, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2].map((reader) => [reader]));
});

test('what fits into the share does not wait', async () => {
  expect((await readersByTurn(3, 3, 25_000)).map(countOf)).toEqual([9]);
});
