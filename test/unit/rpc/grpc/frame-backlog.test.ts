import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { backlogKib, FrameBacklog } from '../../../../src/rpc/grpc/frame-backlog.ts';

const module = JSON.stringify(new URL('../../../../src/rpc/grpc/frame-backlog.ts', import.meta.url).href);

/** Posts 100 KiB at a time, of which 250 may wait, for at most so long; says each time that it goes on. */
const script = (maxMs: number): string => `
  import { parentPort, workerData } from 'node:worker_threads';
  import { backlogKib, FrameBacklog } from ${module};
  const backlog = new FrameBacklog(workerData);
  for (let at = 1; at <= 4; at += 1) {
    backlog.addAndWait(100, 250, ${maxMs});
    parentPort.postMessage(at);
  }
`;

function start(backlog: FrameBacklog, maxMs: number): { readonly thread: Worker; readonly went: number[] } {
  const url = new URL(`data:text/javascript,${encodeURIComponent(script(maxMs))}`);
  const thread = new Worker(url, { workerData: backlog.shared });
  const went: number[] = [];
  thread.on('message', (at: number) => went.push(at));
  return { thread, went };
}

test('a thread that is too far ahead waits until the frames were handled', async () => {
  const backlog = new FrameBacklog();
  const { thread, went } = start(backlog, 60_000);
  await once(thread, 'message');
  await delay(200);
  expect(went).toEqual([1, 2]);
  backlog.remove(10);
  await delay(200);
  expect(went).toEqual([1, 2]);
  backlog.remove(50);
  await delay(200);
  expect(went).toEqual([1, 2, 3]);
  backlog.remove(100);
  await once(thread, 'exit');
  expect(went).toEqual([1, 2, 3, 4]);
});

test('a thread does not wait for ever for a main thread that stalls', async () => {
  const { thread, went } = start(new FrameBacklog(), 50);
  await once(thread, 'exit');
  expect(went).toEqual([1, 2, 3, 4]);
});

test('a frame counts its bytes and a fixed amount', () => {
  expect(backlogKib(1_000, 60_000)).toBe(4_059);
  expect(backlogKib(64, 64 * 64 * 1024)).toBe(4_352);
});
