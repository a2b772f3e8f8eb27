import { expect, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { crashAmong, expectOnce } from '../support/crash-retries.ts';
import { newCrashScene } from '../support/crash-scene.ts';
import { startCluster } from './rig/cluster-under-test.ts';
import { isRetryable, withRetries } from './rig/with-retries.ts';

await describeOnCassandra('calls that change something', (address) => {
  test('after a kill of their node at any moment, retries at other nodes create nothing twice', {
    timeout: 300_000,
  }, async () => {
    await using cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(60_000);
    let hit = 0;
    // The answer at which a node is killed: at least two rounds, and further ones until a kill hits a call.
    for (const [round, atAnswer] of [1, 8, 1, 4, 1, 4].entries()) {
      if (round > 1 && hit > 0) break;
      const victim = cluster.nodeAt(round % 3);
      const [again, onceMore] = [cluster.nodeAt((round + 1) % 3).baseUrl, cluster.nodeAt((round + 2) % 3).baseUrl];
      const scene = await withRetries(() => newCrashScene(victim.baseUrl));
      const crashed = await crashAmong(scene, {
        base: victim.baseUrl,
        atAnswer,
        crash: async () => {
          await victim.kill();
          return again;
        },
      });
      const calls = await expectOnce(crashed, { again, onceMore }, ({ raw }) => isRetryable(raw));
      hit += calls.filter(({ isHit }) => isHit).length;
      await victim.start();
    }
    // Otherwise no kill hit a call, and the test shows nothing.
    expect(hit).toBeGreaterThan(0);
  });
});
