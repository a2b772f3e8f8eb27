import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KeptNotes } from '../support/kept-notes.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { temporaryDir } from '../support/running-node.ts';

/** No file may become longer, as in test/api/full-disk.test.ts. */
const fullAt4Mebibytes = ['bash', '-c', 'ulimit -f 4096; exec "$@"', 'bash'];
const text = 'x'.repeat(60_000);

test('a node with a full disk refuses checkpoints with 503, and signs none that it would contradict later', async () => {
  const DATA_DIR = join(temporaryDir(), 'data');
  await using node = await startNodeProcess({ DATA_DIR, NODE_OPTIONS: '--max-old-space-size=256' }, fullAt4Mebibytes);
  const order = await newOrder(node.base, { keyed: false });
  const [master, unasked] = [await newMaster(order), await newMaster(order)];
  await append(unasked, order.buyer, 'NOTED', {});
  const notes = await KeptNotes.at(node.base);
  const logs = notes.logsOf(order, [master]);
  // The disk is full soon: so many sizes are signed before, however fast the machine is.
  for (let n = 0; n < 6; n += 1) {
    await append(master, order.buyer, 'NOTED', { n });
    for (const log of logs) await notes.get(node.base, log, 'checkpoint');
  }
  let isRunning = true;
  const asking = notes.askRepeatedly({
    logs,
    callers: 4,
    isWanted: () => isRunning,
    baseOf: () => node.base,
    untilBack: () => expect.fail('a call was not answered'),
  });
  const refusals = new Set<string>();
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    for (let n = 0; n < 40 && refusals.size < 2; n += 1) {
      const { status, code } = await append(master, order.buyer, 'NOTED', { lane, n, text });
      if (status !== 200) refusals.add(`${status} ${code}`);
    }
  });
  await Promise.all(lanes);
  const signedBefore = notes.counts.sizes;
  const first = notes.answers.get('503 unavailable') ?? 0;
  for (const log of notes.logsOf(order, [master, unasked])) {
    const largest = notes.largestOf(log);
    const answer = await notes.get(node.base, log, 'checkpoint');
    // Its last event may have been signed in time: then nothing has to be stored. Of `unasked`, no size was signed.
    if (largest > 0 && answer?.status === 200) expect(answer.body.size).toBeLessThanOrEqual(largest);
    else {
      expect(answer).toMatchObject({ status: 503, code: 'unavailable' });
      expect(answer?.body.error).not.toMatchObject({ details: { reason: 'log_behind' } });
    }
  }
  isRunning = false;
  await asking;
  // As without calls for checkpoints.
  expect(refusals).toEqual(new Set(['503 unavailable', '504 outcome_unknown']));
  expect([...notes.answers.keys()].toSorted()).toEqual(['200', '503 unavailable']);
  // LMDB tells the reason up to a second later.
  await expect.poll(() => node.said()).toContain('ledger-trust: the disk failed, so the node stops: ');
  await node.terminate();

  await using again = await startNodeProcess({ DATA_DIR });
  for (const log of logs) expect(await notes.get(again.base, log, 'checkpoint')).toMatchObject({ status: 200 });
  const counts = await notes.expectConsistent(again.base);
  process.stdout.write(`full disk: ${JSON.stringify({ ...counts, signedBefore, first, refusals: [...refusals] })}\n`);
  expect(signedBefore).toBeGreaterThan(10);
  expect(await (await fetch(`${again.opsBase}/metrics`)).text()).not.toMatch(/^svc_log_behind\{.*\} [1-9]/m);
  await again.terminate();
  rmSync(DATA_DIR, { recursive: true });
}, 120_000);
