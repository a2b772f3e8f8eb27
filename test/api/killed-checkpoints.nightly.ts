import { expect, test } from 'vitest';
import { KeptNotes } from '../support/kept-notes.ts';
import { suiteProcesses } from '../support/node-for-tests.ts';
import { eventsOf, newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { suiteDir } from '../support/running-node.ts';

const appends = 5_000;
/** At which answers the node is killed. */
const killsAt = [1_250, 2_500, 3_750];
const callers = 6;

const dataDir = suiteDir();
const startProcess = suiteProcesses();
const start = () => startProcess({ DATA_DIR: dataDir });

test('no checkpoint of a node that is killed three times during 5,000 appends contradicts another', {
  timeout: 1_800_000,
}, async () => {
  let node = await start();
  const order = await newOrder(node.base, { keyed: false });
  const masters = [await newMaster(order), await newMaster(order, order.supplier, 'PO-2')];
  const notes = await KeptNotes.at(node.base);
  const logs = notes.logsOf(order, masters);
  const keptAtKill: number[] = [];
  let killed = Promise.resolve();
  let isAppending = true;
  const asking = notes.askRepeatedly({
    logs,
    callers,
    isWanted: () => isAppending,
    baseOf: () => node.base,
    untilBack: () => killed,
  });
  const answered = await appendRepeatedly({
    masters,
    by: order.buyer,
    name: 'n',
    lanes: 8,
    isWanted: (n) => n < appends,
    baseOf: () => node.base,
    onAnswer(count) {
      if (count !== killsAt[keptAtKill.length]) return;
      keptAtKill.push(notes.counts.notes);
      killed = node.kill().then(async () => {
        node = await start();
      });
    },
  });
  isAppending = false;
  await asking;
  expect([answered, keptAtKill.length]).toEqual([appends, killsAt.length]);
  // Checkpoints were under way at the kills, and were signed before the first, between, and after the last.
  expect(notes.answers.get('no answer')).toBeGreaterThanOrEqual(killsAt.length);
  const grown = [...keptAtKill, notes.counts.notes].map((kept, at) => kept - (keptAtKill[at - 1] ?? 0));
  expect(Math.min(...grown)).toBeGreaterThan(20);
  // On a busy machine a call may wait too long.
  const others = [...notes.answers.keys()].filter((name) => !['200', 'no answer', '503 unavailable'].includes(name));
  expect(others).toEqual([]);

  const counts = await notes.expectConsistent(node.base);
  process.stdout.write(`killed ${killsAt.length} times: ${JSON.stringify({ ...counts, grown })}\n`);
  expect(counts).toMatchObject({ logs: 3, sizes: expect.any(Number) });
  expect(counts.sizes).toBeGreaterThan(100);
  // Opening the ledger and its masters made events too.
  expect((await eventsOf(node.base, order.buyer, order.ledgerId)).length).toBeGreaterThanOrEqual(appends);
  expect(await (await fetch(`${node.opsBase}/metrics`)).text()).not.toMatch(/^svc_log_behind\{.*\} [1-9]/m);
});
