import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { KeptNotes } from '../support/kept-notes.ts';
import { eventsOf, newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

/** So many kills, or fewer if they take longer than this. A node is ready 3 s after its kill at the earliest. */
const killsMax = 200;
const killingMaxMs = 1_500_000;
const killsMin = 20;
const appendsPerKill = 30;
const emptyKeyspaces = 3;

async function expectNothingBehind(nodes: readonly NodeUnderTest[]): Promise<void> {
  for (const node of nodes)
    for (const kind of ['store', 'ledger', 'master'])
      expect([node.id, kind, await node.counted(`svc_log_behind{kind="${kind}"}`)]).toEqual([node.id, kind, 0]);
}

async function restarted(node: NodeUnderTest): Promise<void> {
  await node.kill();
  await node.start();
}

async function orderWithMasters({ baseUrl }: NodeUnderTest) {
  const order = await withRetries(() => newOrder(baseUrl, { keyed: false }));
  const masters = [await withRetries(() => newMaster(order)), await withRetries(() => newMaster(order))];
  return { order, masters };
}

await describeOnCassandra('no log is ever behind', (address) => {
  test('after three nodes started at once on an empty keyspace', { timeout: 300_000 }, async () => {
    for (let n = 0; n < emptyKeyspaces; n += 1) {
      await using cluster = await startCluster({ nodes: 3, cassandra: address });
      await expectNothingBehind(cluster.nodes);
      const notes = await KeptNotes.at(cluster.nodeAt(0).baseUrl);
      const { order, masters } = await orderWithMasters(cluster.nodeAt(n));
      const logs = notes.logsOf(order, masters);
      const asks = cluster.nodes.flatMap(({ baseUrl }) => logs.map((log) => notes.get(baseUrl, log, 'checkpoint')));
      const answers = await Promise.all(asks);
      const size = (await eventsOf(cluster.nodeAt(n).baseUrl, order.buyer, order.ledgerId)).length;
      const sizes = [size, 1, 1];
      expect(answers.map((answer) => answer?.body.size)).toEqual([...sizes, ...sizes, ...sizes]);
      await expectNothingBehind(cluster.nodes);
    }
  });

  test('after many kills of nodes under calls for checkpoints, none of which contradict one another', {
    timeout: killingMaxMs + 600_000,
  }, async () => {
    await using cluster: ClusterUnderTest = await startCluster({ nodes: 2, cassandra: address });
    await cluster.untilBalanced(60_000);
    const notes = await KeptNotes.at(cluster.nodeAt(0).baseUrl);
    const { order, masters } = await orderWithMasters(cluster.nodeAt(0));
    const logs = notes.logsOf(order, masters);
    const began = performance.now();
    let kills = 0;
    for (; kills < killsMax && performance.now() - began < killingMaxMs; kills += 1) {
      const victim = cluster.nodeAt(kills % 2);
      const atAnswer = 1 + ((kills * 7) % (appendsPerKill - 5));
      let isRunning = true;
      let back: Promise<void> | null = null;
      const asking = notes.askRepeatedly({
        logs,
        callers: 8,
        isWanted: () => isRunning,
        baseOf: (caller) => cluster.nodeAt(caller % 2).baseUrl,
        untilBack: () => back ?? afterMs(20),
      });
      await appendRepeatedly({
        masters,
        by: order.buyer,
        name: `round-${kills}`,
        lanes: 4,
        isWanted: (n) => n < appendsPerKill,
        baseOf: (lane, attempt) => cluster.nodeAt((lane + attempt) % 2).baseUrl,
        onAnswer(count) {
          if (count === atAnswer) back = restarted(victim);
        },
      });
      isRunning = false;
      await asking;
      await back;
    }
    const killingMs = performance.now() - began;
    // Otherwise the kills hit nothing.
    expect(notes.answers.get('no answer')).toBeGreaterThanOrEqual(kills);
    expect([...notes.answers.keys()].join()).not.toContain('log_behind');
    const counts = await notes.expectConsistent(cluster.nodeAt(1).baseUrl);
    const told = { kills, killingMs: Math.round(killingMs), ...counts, answers: Object.fromEntries(notes.answers) };
    process.stdout.write(`kills under checkpoints: ${JSON.stringify(told)}\n`);
    expect(kills).toBeGreaterThanOrEqual(killsMin);
    expect([...notes.answers.keys()].join()).not.toContain('log_behind');
    await expectNothingBehind(cluster.nodes);
  });
});
