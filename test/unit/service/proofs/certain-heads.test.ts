import { expect, test } from 'vitest';
import { CertainHeads } from '../../../../src/service/proofs/certain-heads.ts';
import { UnreadableRecord } from '../../../../src/store/unreadable-record.ts';
import { ManualClock, settled } from '../../../support/clock.ts';
import { ledgerId } from '../../../support/commands.ts';

const hash = '0'.repeat(64);

/** A store that answers after a time. Notes when each read began, ms. */
function rigOf(answersAfterMs: number) {
  const clock = new ManualClock(1_000);
  const began: number[] = [];
  const certainHead = async () => {
    began.push(clock.now() - 1_000);
    if (answersAfterMs > 0) await new Promise<void>((resolve) => void clock.after(answersAfterMs, resolve));
    return { seq: began.length, hash };
  };
  return { clock, began, heads: new CertainHeads({ certainHead }, clock) };
}

test('reads of a store that takes its time begin 100 ms apart, and callers share the next one', async () => {
  const { clock, began, heads } = rigOf(10);
  const sizes = [heads.size(ledgerId)];
  await clock.advance(5);
  // They come while a read is under way that began before they asked.
  sizes.push(heads.size(ledgerId), heads.size(ledgerId));
  await clock.advance(50);
  sizes.push(heads.size(ledgerId));
  await clock.advance(200);
  expect([began, await Promise.all(sizes)]).toEqual([
    [0, 100],
    [2, 3, 3, 3],
  ]);
});

test('a store that answers at once is read for each call, without a wait', async () => {
  const { began, heads, clock } = rigOf(0);
  for (let n = 0; n < 3; n += 1) {
    expect(await heads.size(ledgerId)).toBe(n + 2);
    await settled();
  }
  expect([began, clock.timers]).toEqual([[0, 0, 0], 0]);
});

test('a read that fails is not kept: the next caller reads again', async () => {
  const clock = new ManualClock(1_000);
  let fails = true;
  const certainHead = async () => {
    if (fails) throw new Error('no answer');
    return { seq: 4, hash };
  };
  const heads = new CertainHeads({ certainHead }, clock);
  await expect(heads.size(ledgerId)).rejects.toThrow('no answer');
  fails = false;
  expect(await heads.size(ledgerId)).toBe(5);
});

test('a damaged head, which has no hash, gives no size', async () => {
  const certainHead = async () => ({ seq: 4, hash: '' });
  const heads = new CertainHeads({ certainHead }, new ManualClock(1_000));
  await expect(heads.size(ledgerId)).rejects.toBeInstanceOf(UnreadableRecord);
});
