import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Tally } from '../../../bench/tally.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Answers that come `everyMs`, each to a request sent just then. */
function answers(tally: Tally, count: number, everyMs: number): void {
  for (let at = 0; at < count; at++) {
    vi.advanceTimersByTime(everyMs);
    tally.answer('accepted', performance.now());
  }
}

test('a rate counts from when what was open first is answered until all events of one signer are sent', async () => {
  const tally = new Tally({ answers: 100, openMax: 10 });
  answers(tally, 10, 50);
  answers(tally, 80, 10);
  tally.draining();
  answers(tally, 5, 100);
  tally.draining();
  answers(tally, 5, 100);
  const { accepted, seconds, steady } = await tally.finished;
  expect(steady).toEqual({ accepted: 80, seconds: 0.8 });
  expect({ accepted, seconds }).toEqual({ accepted: 100, seconds: 2.3 });
});

test('a refused event is an answer and no part of the rate', async () => {
  const tally = new Tally({ answers: 12, openMax: 1 });
  answers(tally, 1, 1_000);
  vi.advanceTimersByTime(1_000);
  tally.answer('refused', 0);
  answers(tally, 9, 1_000);
  tally.draining();
  answers(tally, 1, 1_000);
  expect((await tally.finished).steady).toEqual({ accepted: 9, seconds: 10 });
});

test('a window with fewer than half of all answers says less than the whole', async () => {
  const rateOf = async (inWindow: number) => {
    const tally = new Tally({ answers: 20, openMax: 5 });
    answers(tally, 5, 100);
    answers(tally, inWindow, 10);
    tally.draining();
    answers(tally, 15 - inWindow, 100);
    return (await tally.finished).steady;
  };
  expect(await rateOf(10)).toEqual({ accepted: 10, seconds: 0.1 });
  expect(await rateOf(9)).toEqual({ accepted: 20, seconds: expect.closeTo(1.19) });
});

test('what is too short to have been full counts as a whole', async () => {
  const tally = new Tally({ answers: 4, openMax: 4 });
  answers(tally, 2, 500);
  tally.draining();
  answers(tally, 2, 500);
  expect((await tally.finished).steady).toEqual({ accepted: 4, seconds: 2 });
});
