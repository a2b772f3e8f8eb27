import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HttpConnections } from '../../../../src/rpc/http/connections.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A socket of which the kernel has taken the first 900 of 1,000 bytes, and no more. */
class StalledSocket extends EventEmitter {
  readonly writableLength = 100;
  readonly _handle = { bytesWritten: 1_000, writeQueueSize: 100 };
  destroyed = false;
  destroy(): void {
    this.destroyed = true;
  }
  resetAndDestroy(): void {
    this.destroyed = true;
  }
}

test('a connection that takes nothing is ended in time, also if the first look at it was some milliseconds late', async () => {
  let nowMs = 0;
  let lateMs = 0;
  using connections = new HttpConnections(new MemoryBudget(1024 * 1024), [], 100, () => nowMs + lateMs);
  const socket = new StalledSocket();
  connections.add(socket as unknown as Socket);
  const sweep = async (): Promise<void> => {
    nowMs += limits.answerSweepMs;
    await vi.advanceTimersByTimeAsync(limits.answerSweepMs);
  };
  lateMs = 5;
  await sweep();
  lateMs = 0;
  const seenMs = nowMs;
  while (nowMs - seenMs < limits.answerStallMs - limits.answerSweepMs) await sweep();
  expect(socket.destroyed).toBe(false);
  await sweep();
  expect([socket.destroyed, nowMs - seenMs]).toEqual([true, limits.answerStallMs]);
});
