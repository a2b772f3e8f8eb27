import { afterAll, expect, test } from 'vitest';
import { append, eventsOf, newMaster, newOrder } from '../../support/parties.ts';
import { runFaultyNode } from '../../support/running-node-faulty.ts';

const node = await runFaultyNode();
const order = await newOrder(node.base);
const master = await newMaster(order);
afterAll(() => node[Symbol.asyncDispose]());

test('an append of which a store that has stopped cannot say whether it was written is answered at once, outcome_unknown', async () => {
  node.fail('append', 'lost');
  node.fail('claim', 'stopped');
  const begun = performance.now();
  const answer = await append(master, order.buyer, 'NOTED', { n: 1 });
  expect([answer.status, answer.code]).toEqual([504, 'outcome_unknown']);
  // Not at its deadline, after 10 s.
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test('an append to a store that has stopped is refused as unavailable, with what to do, and reads go on', async () => {
  node.fail('claim', 'stopped');
  const { status, code, body } = await append(master, order.buyer, 'NOTED', { n: 2 });
  expect([status, code]).toEqual([503, 'unavailable']);
  expect(JSON.stringify(body)).toContain('Nothing was written: this node cannot write to its disk any more and stops.');
  expect((await eventsOf(node.base, order.supplier, order.ledgerId)).length).toBeGreaterThan(0);
});
