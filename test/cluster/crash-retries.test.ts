import { expect, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { crashAmongCreations, crashTimes, newCreatorsWorld } from '../support/creations.ts';
import { askedAgain, isRetryable } from './rig/asked-again.ts';
import { startCluster } from './rig/cluster-under-test.ts';

await describeOnCassandra('calls that make something', (address) => {
  test('whatever the moment at which their node is killed, the other nodes make no second one and give the same ids and secrets', {
    timeout: 300_000,
  }, async () => {
    await using cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(60_000);
    const [{ baseUrl = '' } = {}] = cluster.nodes;
    const world = await askedAgain(() => newCreatorsWorld(baseUrl));
    let hit = 0;
    for (const [round, afterMs] of crashTimes(2, 15, () => hit > 0)) {
      const [victim, next, last] = [0, 1, 2].map((place) => cluster.nodes[(round + place) % cluster.nodes.length]);
      if (victim === undefined) throw new Error('no node');
      const crashed = await crashAmongCreations(world, round, {
        base: victim.baseUrl,
        afterMs,
        crash: async () => {
          await victim.kill();
          return { again: next?.baseUrl ?? '', onceMore: last?.baseUrl ?? '' };
        },
        asksAgain: ({ raw }) => isRetryable(raw),
      });
      hit += crashed.hit;
      await victim.start();
    }
    // Otherwise no crash hit a call under way, and nothing was shown.
    expect(hit).toBeGreaterThan(0);
  });
});
