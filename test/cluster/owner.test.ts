import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../simulation/random.ts';
import type { FaultContext } from './faults/fault.ts';
import { ownerOfSomething } from './faults/owner.ts';

type Context = Pick<FaultContext, 'cluster' | 'world' | 'random'>;

/** A ledger whose shard, and another one, belong to node-1 in Redis. `views` are the views of node-1, one a look. */
function contextOf(views: (() => Promise<object>)[]): Context & { looks(): number } {
  let looks = 0;
  const view = () => (views[looks++] ?? views.at(-1))?.();
  const cluster = {
    nodes: [{ id: 'node-1', view }, { id: 'node-2' }],
    shardOf: () => 3,
    owners: async () =>
      new Map([
        [3, 'node-1'],
        [4, 'node-1'],
        [5, 'node-2'],
      ]),
  };
  const context = { cluster, world: { ledgers: [{ id: 'a' }] }, random: new SeededRandom(1) };
  return { ...(context as unknown as Context), looks: () => looks };
}

const holds = (held: number, leaving = 0) => ({ members: [], owners: {}, shards: { held, leaving } });

describe('the target of a fault', () => {
  test('is the node that reports itself as the owner', async () => {
    const context = contextOf([async () => holds(1, 1)]);
    const { victim, hit } = await ownerOfSomething(context);
    expect([victim.id, hit.map(({ id }) => id), context.looks()]).toEqual(['node-1', ['a'], 1]);
  });

  test.each([
    ['started again under the name that Redis still has for it', async () => holds(0)],
    ['that has some of them', async () => holds(1)],
    ['that does not answer', () => Promise.reject(new Error('connect ECONNREFUSED'))],
  ])('is not a node %s', async (_, before) => {
    const context = contextOf([before, before, async () => holds(2)]);
    expect((await ownerOfSomething(context)).victim.id).toBe('node-1');
    expect(context.looks()).toBe(3);
  });
});
