import { expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { FollowedPages } from '../../../../src/service/following/followed-pages.ts';

function rig(bytesMax: number) {
  const memory = { held: 0 };
  const pages = new FollowedPages(bytesMax, {
    add: (bytes) => {
      memory.held += bytes;
    },
    release: (bytes) => {
      memory.held -= bytes;
    },
  });
  return { memory, pages };
}

test('the pages that were used last stay, and the memory of the others is released', () => {
  const { memory, pages } = rig(5_000);
  for (const seq of [0, 32, 64]) pages.add(pages.use('l', seq), null, 100);
  expect([memory.held, pages.bytes]).toEqual([3 * 1_472, 3 * 1_472]);
  pages.use('l', 0);
  pages.add(pages.use('l', 96), null, 100);
  expect([0, 32, 64, 96].map((seq) => pages.at('l', seq))).toEqual([null, undefined, null, null]);
  expect(memory.held).toBe(3 * 1_472);
});

test('a page that is larger than the bound is kept alone, so that its reader goes on', () => {
  const { pages } = rig(10);
  pages.add(pages.use('l', 0), null, 0);
  pages.add(pages.use('l', 32), null, 0);
  expect([pages.at('l', 0), pages.at('l', 32)]).toEqual([undefined, null]);
});

test('the pages of a ledger that nobody follows are dropped', () => {
  const { memory, pages } = rig(1_000_000);
  pages.add(pages.use('l', 0), null, 0);
  pages.add(pages.use('k', 0), null, 0);
  pages.forget('l');
  expect([pages.at('l', 0), pages.at('k', 0), memory.held]).toEqual([undefined, null, 1_024]);
});

test('nothing stays counted in the memory budget for a page of events of any length', () => {
  const budget = new MemoryBudget(1_000_000);
  const pages = new FollowedPages(1_000_000, {
    add: (bytes) => budget.add('read', bytes),
    release: (bytes) => budget.release('read', bytes),
  });
  for (const chars of [0, 1, 15, 17, 333]) pages.add(pages.use('l', 0), null, chars);
  pages.forget('l');
  expect(budget.heldBytes()).toBe(0);
});
