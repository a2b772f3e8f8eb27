import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HttpConnections } from '../../../../src/rpc/http/connections.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

/** What the kernel tells of sockets, how often it was asked, and how long it takes to answer. */
const kernel = vi.hoisted(() => ({ unsent: new Map<string, number>(), looks: 0, tookMs: 0, inodes: 0, isLinux: true }));
vi.mock(import('../../../../src/rpc/http/socket-state.ts'), () => ({
  inodeOf: (socket) => {
    kernel.inodes += 1;
    return kernel.isLinux ? `inode of ${(socket as unknown as AnsweredSocket)._handle.fd}` : '';
  },
  async unsentBytes() {
    kernel.looks += 1;
    const unsent = new Map(kernel.unsent);
    if (kernel.tookMs > 0) await new Promise((resolve) => setTimeout(resolve, kernel.tookMs));
    return unsent;
  },
}));

const MiB = 1024 * 1024;
let nowMs = 0;
// The mock is not applied to a file with a declaration by `using`.
let connections: HttpConnections;
beforeEach(() => {
  vi.useFakeTimers();
  Object.assign(kernel, { looks: 0, tookMs: 0, inodes: 0, isLinux: true });
  connections = new HttpConnections(new MemoryBudget(MiB), [], 100, () => nowMs);
});
afterEach(() => {
  connections[Symbol.dispose]();
  vi.useRealTimers();
});

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += limits.answerSweepMs) {
    nowMs += limits.answerSweepMs;
    await vi.advanceTimersByTimeAsync(limits.answerSweepMs);
  }
}

/** The server's end of a connection on which the kernel took all bytes of an answer. */
class AnsweredSocket extends EventEmitter {
  readonly writableLength = 0;
  readonly _handle: { readonly fd: number; bytesWritten: number };
  destroyed = false;
  constructor(fd: number, bytes: number) {
    super();
    this._handle = { fd, bytesWritten: bytes };
    connections.add(this as unknown as Socket);
    connections.answering(this);
    this.holdsUnsent(bytes);
  }
  holdsUnsent(bytes: number): void {
    kernel.unsent.set(`inode of ${this._handle.fd}`, bytes);
  }
  destroy(): void {
    this.destroyed = true;
  }
  resetAndDestroy(): void {
    this.destroyed = true;
  }
}

test('the kernel is asked every few seconds, and a client that takes nothing still ends within 30 s', async () => {
  let left = 100 * MiB;
  const slow = new AnsweredSocket(1, left);
  await pass(limits.answerSweepMs);
  for (let fd = 2; fd < 10; fd += 1) {
    const socket = new AnsweredSocket(fd, MiB);
    const startMs = nowMs;
    const looksBefore = kernel.looks;
    while (!socket.destroyed) {
      left -= 1;
      slow.holdsUnsent(left);
      await pass(limits.answerSweepMs);
    }
    expect(nowMs - startMs).toBeGreaterThanOrEqual(limits.answerStallMs);
    expect(nowMs - startMs).toBeLessThanOrEqual(30_000);
    expect(kernel.looks - looksBefore).toBeLessThanOrEqual(7);
    // So that the next one begins at another time between two looks.
    await pass(limits.answerSweepMs);
  }
  expect(slow.destroyed).toBe(false);
});

test('a slow reader keeps its connection although the kernel took bytes while a long look was under way', async () => {
  const socket = new AnsweredSocket(1, MiB);
  kernel.tookMs = 4_000;
  while (kernel.looks === 0) await pass(limits.answerSweepMs);
  socket._handle.bytesWritten += MiB / 2;
  await pass(kernel.tookMs);
  kernel.tookMs = 0;
  for (let part = 1; part < 10; part += 1) {
    socket.holdsUnsent(1.5 * MiB - (part * MiB) / 20);
    await pass(10_000);
  }
  expect(socket.destroyed).toBe(false);
});

test('connections that close before the kernel is asked cost no question for their inodes', async () => {
  await pass(limits.answerSweepMs);
  new AnsweredSocket(1, MiB);
  while (kernel.looks === 0) await pass(limits.answerSweepMs);
  kernel.inodes = 0;
  const sockets = Array.from({ length: 100 }, (_unused, at) => new AnsweredSocket(10 + at, MiB));
  await pass(2 * limits.answerSweepMs);
  for (const socket of sockets) socket.emit('close');
  await pass(limits.answerUnreadLookMs);
  expect([kernel.inodes, kernel.looks]).toEqual([0, 2]);
});

test('where the kernel tells nothing of a connection, it is asked once', async () => {
  kernel.isLinux = false;
  const sockets = [1, 2].map((fd) => new AnsweredSocket(fd, MiB));
  await pass(12 * limits.answerUnreadLookMs);
  expect([kernel.inodes, kernel.looks]).toEqual([2, 0]);
  expect(sockets.some(({ destroyed }) => destroyed)).toBe(false);
});
