import { expect, test } from 'vitest';
import { heldDeliveriesBound, isolationRun } from '../../bench/webhook-isolation.ts';
import { runNode } from '../support/running-node.ts';

/** A thirtieth of what `npm run bench:webhooks` sends. */
const events = 300;
const slowdownMax = 2;
/** Other programs run on the machine, so the best of so many pairs counts. */
const pairsMax = 4;

/** Each on a new node, which is as cold as the others. */
async function run(besideSick: boolean) {
  // Not one of a cluster: it holds all deliveries.
  await using node = await runNode({ env: {} });
  return await isolationRun({ baseUrl: node.base, opsBase: node.opsBase }, events, besideSick);
}

test('17 receivers get all events in order in at most twice the time beside dead and slow receivers', async () => {
  const slowdowns: number[] = [];
  do {
    const alone = await run(false);
    const beside = await run(true);
    for (const { inOrder, heldDeliveriesMax } of [alone, beside]) {
      expect(inOrder).toBe(true);
      expect(heldDeliveriesMax).toBeLessThanOrEqual(heldDeliveriesBound);
    }
    // Each dead receiver holds the window that its attempts are of.
    expect(beside.heldDeliveriesMax).toBeGreaterThan(0);
    const [dead, deadToo, slow] = beside.sick;
    for (const one of [dead, deadToo])
      expect(one).toMatchObject({ kind: 'dead', received: 0, PENDING: events, DELIVERED: 0, FAILED: 0 });
    expect(slow).toMatchObject({ kind: 'slow', FAILED: 0 });
    slowdowns.push(beside.deliveredSeconds / alone.deliveredSeconds);
  } while (Math.min(...slowdowns) > slowdownMax && slowdowns.length < pairsMax);
  expect(Math.min(...slowdowns)).toBeLessThanOrEqual(slowdownMax);
}, 240_000);
