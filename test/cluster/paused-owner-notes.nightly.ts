import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { KeptNotes } from '../support/kept-notes.ts';
import { newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { leaseTtlMs, startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const pauses = 3;
const balancedMaxMs = 60_000;
const restMs = 3_000;

await describeOnCassandra('checkpoints of a ledger whose owner is paused', (address) => {
  test('never contradict one another, by the proofs of the last node alive', { timeout: 600_000 }, async () => {
    await using cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(balancedMaxMs);
    const { baseUrl } = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(baseUrl, { keyed: false }));
    const masters = [await newMaster(order), await newMaster(order, order.supplier, 'PO-2')];
    const notes = await KeptNotes.at(baseUrl);
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
      logs: notes.logsOf(order, masters),
      callers: 9,
      isWanted: () => isRunning,
      baseOf: (caller) => cluster.nodeAt(caller % 3).baseUrl,
      untilBack: () => afterMs(100),
    });
    const load = Promise.all([appending, asking]);
    const paused = new Set<string>();
    const keptWhilePaused: number[] = [];
    const watched = async () => {
      for (let n = 0; n < pauses; n += 1) {
        await afterMs(restMs);
        const owner = await ownerWithin(() => cluster.ownerOf(order.ledgerId));
        paused.add(owner.id);
        const before = notes.counts.sizes;
        owner.pause();
        await afterMs(leaseTtlMs + restMs);
        keptWhilePaused.push(notes.counts.sizes - before);
        owner.resume();
      }
      await afterMs(restMs);
      isRunning = false;
    };
    const [[appended]] = await Promise.all([load, watched()]);
    // Others took the ledger over, and signed larger sizes of it meanwhile.
    expect(Math.min(...keptWhilePaused)).toBeGreaterThan(0);
    expect(paused.size).toBeGreaterThan(1);
    expect([...notes.answers.keys()].filter((name) => !/^(200|50[34] |429 )/.test(name))).toEqual([]);
    expect([...notes.answers.keys()].join()).not.toContain('log_behind');

    const [last, ...others] = cluster.nodes;
    await Promise.all(others.map((node) => node.kill()));
    const counts = await notes.expectConsistent(last?.baseUrl ?? '');
    const told = { appended, ...counts, keptWhilePaused, answers: Object.fromEntries(notes.answers) };
    process.stdout.write(`paused ${pauses} times: ${JSON.stringify(told)}\n`);
    expect(counts.logs).toBe(3);
    for (const kind of ['store', 'ledger', 'master'])
      expect(await last?.counted(`svc_log_behind{kind="${kind}"}`)).toBe(0);
  });
});

async function ownerWithin(look: () => Promise<NodeUnderTest | null>, maxMs = 20_000): Promise<NodeUnderTest> {
  for (const began = performance.now(); performance.now() - began < maxMs; await afterMs(100)) {
    const owner = await look();
    if (owner !== null) return owner;
  }
  throw new Error(`nobody owns the ledger after ${maxMs} ms`);
}
