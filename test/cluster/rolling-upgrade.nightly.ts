import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { KeptNotes } from '../support/kept-notes.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const balancedMaxMs = 60_000;
const restMs = 3_000;
/** Calls at a ledger without load, each after another append. */
const quietCalls = 100;
const upgradedName = 'upgraded';

/** The claims of all nodes by reason, and the appends that a claim shut out. */
async function claimsOf({ nodes }: ClusterUnderTest): Promise<readonly string[]> {
  const texts = await Promise.all(nodes.map((node) => node.metrics()));
  return texts.flatMap((text, at) =>
    [...text.matchAll(/^svc_(?:claims|fenced_appends)_total.*$/gm)].map(([line]) => `node ${at}: ${line}`),
  );
}

await describeOnCassandra('a cluster whose nodes are replaced one by one by nodes that sign checkpoints', (address) => {
  test('answers rightly, or route_not_found, or retryably, and checkpoints fence no owner', {
    timeout: 1_200_000,
  }, async () => {
    const env = { NODE_OPTIONS: `--import=${new URL('./rig/without-proofs.ts', import.meta.url)}` };
    await using cluster = await startCluster({ nodes: 3, cassandra: address, env });
    await cluster.untilBalanced(balancedMaxMs);
    const { baseUrl } = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(baseUrl, { keyed: false }));
    const masters = [await newMaster(order), await newMaster(order, order.supplier, 'PO-2')];
    const notes = await KeptNotes.at(baseUrl);
    const logs = notes.logsOf(order, masters);
    let isRunning = true;
    const load = Promise.all([
      appendRepeatedly({
        masters,
        by: order.buyer,
        name: 'n',
        lanes: 6,
        isWanted: () => isRunning,
        baseOf: (lane, attempt) => cluster.nodeAt((lane + attempt) % 3).baseUrl,
      }),
      notes.askRepeatedly({
        logs,
        callers: 6,
        isWanted: () => isRunning,
        baseOf: (caller) => cluster.nodeAt(caller % 3).baseUrl,
        untilBack: () => afterMs(50),
      }),
    ]);
    const signedSizes: number[] = [];
    const upgraded = async () => {
      for (const node of cluster.nodes) {
        await afterMs(restMs);
        signedSizes.push(notes.counts.sizes);
        writeFileSync(join(cluster.dir, node.id, upgradedName), '');
        expect(await node.terminate()).toMatchObject({ code: 0 });
        await node.start();
      }
      signedSizes.push(notes.counts.sizes);
      await cluster.untilBalanced(balancedMaxMs);
      await afterMs(restMs);
      isRunning = false;
    };
    const [[appended]] = await Promise.all([load, upgraded()]);
    const underLoad = Object.fromEntries(notes.answers);
    // Nothing was signed before the first new node.
    expect([signedSizes[0], underLoad['200'], underLoad['404 route_not_found']]).toEqual([
      0,
      expect.any(Number),
      expect.any(Number),
    ]);
    const others = Object.keys(underLoad).filter(
      (name) => !/^(200|404 route_not_found|no answer|503 unavailable( tree_building)?)$/.test(name),
    );
    expect(others).toEqual([]);

    // Makes the tiles that a node lacks.
    const counts = await notes.expectConsistent(cluster.nodeAt(2).baseUrl);
    const owner = await cluster.ownerOf(order.ledgerId);
    const [master] = masters;
    if (owner === null || master === undefined) throw new Error('no owner, or no master');
    const appendAtOwner = () =>
      withRetries(async () => {
        const { status, raw } = await append({ ...master, base: owner.baseUrl }, order.buyer, 'NOTED', { quiet: true });
        if (status !== 200) throw new Error(raw);
      });
    await appendAtOwner();
    const before = await claimsOf(cluster);
    expect(before.join('\n')).toMatch(/svc_claims_total\{reason="activation"\} [1-9]/);
    let signed = 0;
    for (let n = 0; n < quietCalls; n += 1) {
      await appendAtOwner();
      const { baseUrl } = cluster.nodeAt(n % 3);
      const answers = await Promise.all(logs.map((log) => notes.ask(baseUrl, log, n)));
      for (const answer of answers) {
        if (answer?.status === 200) signed += 1;
        // On a busy machine an answer may come too late.
        else expect([answer?.code, answer?.raw]).toEqual(['unavailable', expect.stringMatching(/in time|call ended/)]);
      }
    }
    expect(signed).toBeGreaterThan(2 * quietCalls);
    expect(await claimsOf(cluster)).toEqual(before);

    await notes.expectConsistent(cluster.nodeAt(1).baseUrl);
    process.stdout.write(`rolling upgrade: ${JSON.stringify({ appended, ...counts, signedSizes, underLoad })}\n`);
    for (const node of cluster.nodes)
      for (const kind of ['store', 'ledger', 'master'])
        expect([node.id, kind, await node.counted(`svc_log_behind{kind="${kind}"}`)]).toEqual([node.id, kind, 0]);
  });
});
