import { expect, test } from 'vitest';
import { FairShare } from '../../../src/runtime/limits/fair-share.ts';

test('a full share refuses holders above their equal part, and otherwise ends the largest holder', () => {
  const ended: string[] = [];
  const share = new FairShare<string>(100, (holder) => ended.push(holder));
  const more = (holder: string, amount: number) => {
    share.add(holder, amount);
    return share.makeRoom(holder);
  };

  // Below the bound a holder may have everything.
  expect([more('large', 60), more('small', 10), more('middle', 30), share.isFull]).toEqual([true, true, true, false]);
  expect([more('large', 1), more('middle', 5), ended]).toEqual([false, false, []]);
  expect([more('small', 1), ended]).toEqual([true, ['large']]);

  // The next largest is found once the largest holds less.
  share.add('large', -share.heldBy('large'));
  expect([share.total, share.part]).toEqual([46, 50]);
  expect([more('other', 40), more('small', 20), ended]).toEqual([true, true, ['large', 'other']]);
  share.add('middle', 10);
  share.endLargestIfFull();
  expect(ended.at(-1)).toBe('middle');

  for (const holder of ['middle', 'small', 'other']) share.add(holder, -share.heldBy(holder));
  expect([share.total, more('small', 100), ended.length]).toEqual([0, true, 3]);
});

test('the holder that is ended is the one with the most, as amounts change', () => {
  const ended: string[] = [];
  const share = new FairShare<string>(1, (holder) => ended.push(holder));
  const largest = (holder: string, amount: number) => {
    share.add(holder, amount);
    share.endLargestIfFull();
    return ended.at(-1);
  };
  expect([largest('one', 5), largest('two', 7), largest('one', 3), largest('one', -4)]).toEqual([
    'one',
    'two',
    'one',
    'two',
  ]);
});
