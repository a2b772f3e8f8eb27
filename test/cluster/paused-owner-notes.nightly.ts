import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { KeptNotes } from '../support/kept-notes.ts';
import { newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { startCluster } from './rig/cluster-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const pauses = 3;
const balancedMaxMs = 60_000;
const restMs = 3_000;
const reachedMaxMs = 30_000;

await describeOnCassandra('checkpoints of a ledger whose owner is paused', (address) => {
  test('never contradict one another, by the proofs of the last node alive', { timeout: 600_000 }, async () => {
    await using cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(balancedMaxMs);
    const { baseUrl } = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(baseUrl, { keyed: false }));
    const masters = [await newMaster(order), await newMaster(order, order.supplier, 'PO-2')];
    const notes = await KeptNotes.at(baseUrl);
    const logs = notes.logsOf(order, masters);
    const [ledgerLog] = logs;
    if (ledgerLog === undefined) throw new Error('no log');
    let isRunning = true;
    // Each caller stays at its node: those of a paused node hang, and the others go on.
    const appending = appendRepeatedly({
      masters,
      by: order.buyer,
      name: 'n',
      lanes: 9,
      isWanted: () => isRunning,
      baseOf: (lane) => cluster.nodeAt(lane % 3).baseUrl,
    });
    const asking = notes.askRepeatedly({
      logs,
      callers: 9,
      isWanted: () => isRunning,
      baseOf: (caller) => cluster.nodeAt(caller % 3).baseUrl,
      untilBack: () => afterMs(100),
    });
    const load = Promise.all([appending, asking]);
    /** Events of the ledger that were signed anew by other nodes than the paused owner, in each pause. */
    const signedWhilePaused: number[] = [];
    const pauseOwner = async () => {
      await afterMs(restMs);
      const paused = await within('a node owns the ledger', () => cluster.ownerOf(order.ledgerId));
      paused.pause();
      try {
        // A shard may go back to the same node after a pause, but while that is paused another one has to own it.
        await within('another node owns the ledger', async () => {
          const owner = await cluster.ownerOf(order.ledgerId);
          return owner === paused ? null : owner;
        });
        const before = notes.largestOf(ledgerLog);
        await within('a larger size is signed', async () => notes.largestOf(ledgerLog) > before || null);
        await afterMs(restMs);
        signedWhilePaused.push(notes.largestOf(ledgerLog) - before);
      } finally {
        paused.resume();
      }
    };
    const watched = async () => {
      try {
        for (let n = 0; n < pauses; n += 1) await pauseOwner();
        await afterMs(restMs);
      } finally {
        isRunning = false;
      }
    };
    const [[appended]] = await Promise.all([load, watched()]);
    expect([...notes.answers.keys()].filter((name) => !/^(200|50[34] |429 )/.test(name))).toEqual([]);
    expect([...notes.answers.keys()].join()).not.toContain('log_behind');

    const [last, ...others] = cluster.nodes;
    await Promise.all(others.map((node) => node.kill()));
    const counts = await notes.expectConsistent(last?.baseUrl ?? '');
    const told = { appended, ...counts, signedWhilePaused, answers: Object.fromEntries(notes.answers) };
    process.stdout.write(`paused ${pauses} times: ${JSON.stringify(told)}\n`);
    expect(counts.logs).toBe(3);
    for (const kind of ['store', 'ledger', 'master'])
      expect(await last?.counted(`svc_log_behind{kind="${kind}"}`)).toBe(0);
  });
});

/** Looks until there is something. Rejects after `reachedMaxMs`. */
async function within<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  for (const began = performance.now(); performance.now() - began < reachedMaxMs; await afterMs(100)) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new Error(`not within ${reachedMaxMs} ms: ${what}`);
}
