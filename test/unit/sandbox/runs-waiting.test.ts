import { setImmediate as nextIteration } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { RunSandboxRequestSchema } from '../../../src/gen/svc/v1/sandbox_pb.ts';
import { sandboxService } from '../../../src/sandbox/sandbox-service.ts';

/** A sandbox whose runs stay in their only step until they are ended, the oldest first. */
function sandboxOf(waitingMax: number) {
  const ends: (() => void)[] = [];
  const done: string[] = [];
  const refused: [address: string, error: unknown][] = [];
  const { runSandbox } = sandboxService(async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    ends.push(() => resolve('done'));
    return (async function* lines() {
      yield await promise;
    })();
  }, waitingMax);
  const { signal } = new AbortController();
  return {
    done,
    refused,
    async ask(address: string, runs: number): Promise<void> {
      for (let asked = 0; asked < runs; asked += 1) {
        void Array.fromAsync(runSandbox(create(RunSandboxRequestSchema), { signal, address })).then(
          () => done.push(address),
          (error: unknown) => refused.push([address, error]),
        );
      }
      await nextIteration();
    },
    async endRuns(count: number): Promise<void> {
      for (let ended = 0; ended < count; ended += 1) {
        ends.shift()?.();
        await nextIteration();
      }
    },
  };
}

test('an address that waits for many runs does not keep another one waiting', async () => {
  const sandbox = sandboxOf(64);
  await sandbox.ask('a', 10);
  await sandbox.ask('b', 1);
  await sandbox.endRuns(11);
  expect(sandbox.done).toEqual([...'aaaaabaaaaa']);
});

test('beyond the runs that may wait, the address that waits for most is refused', async () => {
  const sandbox = sandboxOf(3);
  await sandbox.ask('a', 8);
  const overloaded = expect.objectContaining({ code: 'overloaded', details: { bound: 'SANDBOX_RUNS_WAITING' } });
  expect(sandbox.refused).toEqual([['a', overloaded]]);
  await sandbox.ask('b', 1);
  expect(sandbox.refused).toEqual([
    ['a', overloaded],
    ['a', overloaded],
  ]);
  await sandbox.endRuns(7);
  expect(sandbox.done).toEqual([...'aaaaaba']);
});
