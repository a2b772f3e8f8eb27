import { afterAll, expect, test } from 'vitest';
import { isolationRun } from '../../bench/webhook-isolation.ts';
import { runNode } from '../support/running-node.ts';

/** A thirtieth of what `npm run bench:webhooks` sends. */
const events = 300;
const slowdownMax = 2;
/** 17 windows of 128 deliveries that answer quickly, and 3 of 32 that do not, while the next window is being read. */
const heldMax = 2 * (17 * 128 + 3 * 32);
/** Other programs run on the machine, so the best of so many pairs counts. */
const pairsMax = 4;

// Not one of a cluster: it holds all deliveries.
const node = await runNode({ env: {} });
afterAll(() => node[Symbol.asyncDispose]());

test('17 receivers get all events in order in at most twice the time beside dead and slow receivers', async () => {
  const at = { baseUrl: node.base, opsBase: node.opsBase };
  const slowdowns: number[] = [];
  do {
    const alone = await isolationRun(at, events, false);
    const beside = await isolationRun(at, events, true);
    for (const run of [alone, beside]) {
      expect(run.inOrder).toBe(true);
      expect(run.heldDeliveriesMax).toBeLessThanOrEqual(heldMax);
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
