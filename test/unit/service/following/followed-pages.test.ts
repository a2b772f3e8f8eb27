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

/** The page of a seq, while it is being read. */
function pageBeingRead(pages: FollowedPages, seq: number) {
  const page = pages.use('l', seq);
  page.reading = Promise.resolve();
  return page;
}

test('pages that are being read stay while the bound can be held without them', () => {
  const { pages } = rig(3 * 1_024);
  const first = pageBeingRead(pages, 0);
  const empty = pageBeingRead(pages, 32);
  const failed = pages.use('l', 64);
  pages.add(first, null, 0);
  pages.add(pages.use('l', 96), null, 0);
  const last = pages.use('l', 128);
  pages.add(last, null, 0);
  pages.add(last, null, 0);
  expect([0, 96, 128, 129].map((seq) => pages.at('l', seq))).toEqual([null, undefined, null, null]);
  expect(
    [pages.use('l', 0), pages.use('l', 32), pages.use('l', 64)].map((page) => [first, empty, failed].indexOf(page)),
  ).toEqual([0, 1, -1]);
});

test('a page that is being read is dropped if nothing else keeps the bound, and one without events is not', () => {
  const { memory, pages } = rig(2 * 1_024);
  const empty = pageBeingRead(pages, 0);
  const dropped = pageBeingRead(pages, 32);
  pages.add(dropped, null, 0);
  const last = pageBeingRead(pages, 64);
  pages.add(last, null, 0);
  pages.add(last, null, 0);
  pages.add(dropped, null, 0);
  expect([pages.at('l', 32), pages.at('l', 64), pages.use('l', 0) === empty]).toEqual([undefined, null, true]);
  expect([memory.held, pages.bytes]).toEqual([2 * 1_024, 2 * 1_024]);
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
