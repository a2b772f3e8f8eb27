import { afterEach, expect, test, vi } from 'vitest';
import { budgetMs } from '../../../cluster/peers/grpc-peers.ts';
import { ManualClock } from '../../support/clock.ts';
import { streamWorld } from '../../support/peer-stream-world.ts';
import { startMs } from '../../support/world.ts';

afterEach(() => void vi.useRealTimers());

test('a stream that nobody takes ends once its time is up, though nothing is asked on it', async () => {
  const { far, stream, pass } = streamWorld(new ManualClock(startMs));
  await pass(budgetMs - 100);
  expect(stream.isOver).toBe(false);
  await pass(200);
  expect(stream.isOver).toBe(true);
  expect(far.cancelled).toBe(true);
});

test('one that was taken stays, though nothing is asked on it', async () => {
  const { far, stream, pass } = streamWorld(new ManualClock(startMs));
  expect(stream.isAccepted).toBe(false);
  far.accept();
  expect(stream.isAccepted).toBe(true);
  await pass(4 * budgetMs);
  expect(stream.isOver).toBe(false);
});
