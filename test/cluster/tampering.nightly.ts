import { afterAll, beforeAll, expect, test } from 'vitest';
import { withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { type Disk, makeTamperingCases, type TamperingCase, wronglyRead } from '../support/tamperings.ts';
import { storedScene } from './damage/scene.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

await describeOnCassandra('a change in Cassandra behind the service', (address) => {
  let cluster: ClusterUnderTest;
  let cases: readonly TamperingCase[] = [];

  beforeAll(async () => {
    cluster = await startCluster({ nodes: 2, cassandra: address });
    await cluster.untilBalanced(60_000);
    const [{ baseUrl = '' } = {}] = cluster.nodes;
    cases = await makeTamperingCases(baseUrl, withRetries);
    await withClient(cluster.settings, async (client) => {
      for (const tampered of cases) {
        const { row, setRow, run } = storedScene(client, tampered);
        const remove = async (scope: string, seq: number) => {
          const where = 'WHERE ledger_id = ? AND bucket = 0 AND scope = ? AND seq = ?';
          const key = [tampered.order.ledgerId, scope, seq];
          expect((await run(`SELECT row FROM ledger_event ${where}`, key)).rowLength).toBe(1);
          return run(`DELETE FROM ledger_event ${where}`, key);
        };
        const disk: Disk = {
          row,
          put: setRow,
          remove: (seq) => remove('', seq),
          removeFromMaster: (masterId, seq) => remove(`master:${masterId}`, seq),
          addToMaster: (masterId, seq) =>
            run('INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, 0, ?, ?, ?)', [
              tampered.order.ledgerId,
              `master:${masterId}`,
              seq,
              String(seq),
            ]),
        };
        await tampered.tampering.change(disk, tampered.master);
      }
    });
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  test('is found by the next reads at all nodes', async () => {
    for (const { baseUrl } of cluster.nodes) expect(await wronglyRead(baseUrl, cases)).toEqual([]);
  }, 60_000);
});
