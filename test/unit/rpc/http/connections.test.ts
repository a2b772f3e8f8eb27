import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HttpConnections } from '../../../../src/rpc/http/connections.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

class StalledSocket extends EventEmitter {
  writableLength = 0;
  readonly _handle = { bytesWritten: 0, writeQueueSize: 0 };
  destroyed = false;
  /** The kernel takes the first 900 of 1,000 bytes, and no more. */
  stall(): void {
    this.writableLength = 100;
    Object.assign(this._handle, { bytesWritten: 1_000, writeQueueSize: 100 });
  }
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
  connections.answering(socket);
  socket.stall();
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
