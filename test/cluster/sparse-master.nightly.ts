import { expect, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { watchHost } from '../support/host-watch.ts';
import { KeptNotes } from '../support/kept-notes.ts';
import { appendMany } from '../support/long-ledger.ts';
import { newMaster, newOrder } from '../support/parties.ts';
import { percentile } from './campaign/percentiles.ts';
import { startCluster } from './rig/cluster-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const masterEvents = 255;
/** Events of the ledger for one of the master. */
const apart = 100;
const checkpointMaxMs = 30;
const calls = 100;

await describeOnCassandra('a master whose events lie scattered over its ledger', (address) => {
  test('has its second checkpoint in 30 ms', { timeout: 900_000 }, async () => {
    await using cluster = await startCluster({ nodes: 1, cassandra: address });
    const node = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(node.baseUrl, { keyed: false }));
    const [sparse, other] = [await newMaster(order), await newMaster(order)];
    // Creating the master was its first event.
    await appendMany(node.grpcUrl.replace('http://', ''), order, (masterEvents - 1) * apart, (n) =>
      n % apart === 0 ? sparse : other,
    );
    const notes = await KeptNotes.at(node.baseUrl);
    const [, log] = notes.logsOf(order, [sparse]);
    if (log === undefined) throw new Error('no log');
    const timed = async (path: string) => {
      const began = performance.now();
      const answer = await notes.get(node.baseUrl, log, path);
      expect([answer?.status, answer?.raw]).toEqual([200, expect.any(String)]);
      return { ms: performance.now() - began, size: answer?.body.size };
    };
    const host = watchHost();
    const first = await timed('checkpoint');
    expect(first.size).toBe(masterEvents);
    const second = await timed('checkpoint');
    // Older sizes, for which the node keeps nothing in memory.
    const took: number[] = [];
    for (let n = 0; n < calls; n += 1) took.push((await timed(`checkpoint?size=${masterEvents - 1 - n}`)).ms);
    await node.kill();
    await node.start();
    const afterRestart = await timed('checkpoint');
    const p50 = percentile(took, 50);
    const ms = { first: first.ms, second: second.ms, p50OfOlder: p50, afterRestart: afterRestart.ms };
    const rounded = Object.fromEntries(Object.entries(ms).map(([name, value]) => [name, Number(value.toFixed(1))]));
    process.stdout.write(`sparse master: ${JSON.stringify({ ...rounded, kept: host.keptShare() })}\n`);
    expect(second.ms).toBeLessThan(host.bound(4 * checkpointMaxMs));
    expect(p50).toBeLessThan(host.bound(checkpointMaxMs));
    await notes.expectConsistent(node.baseUrl);
  });
});
