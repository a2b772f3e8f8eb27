import { expect, test } from 'vitest';
import type { ReadStatuses } from '../support/attacks/read-target.ts';
import { readsAbandoned, readsFiltered, readsLarge, readsVerified } from '../support/attacks/reads.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { append } from '../support/parties.ts';

const { base, node, order, master } = await nodeWithMaster();

/** Long reads by their state, as the metrics of the node have them. */
async function reads(): Promise<Record<string, number>> {
  const metrics = await (await fetch(`${node.opsBase}/metrics`)).text();
  const found = [...metrics.matchAll(/^svc_reads\{state="(\w+)"\} (\d+)$/gm)];
  return Object.fromEntries(found.map(([, state = '', count]) => [state, Number(count)]));
}

test.each([
  ['filtered reads', readsFiltered, 40, 200],
  ['verified reads', readsVerified, 40, 200],
  ['abandoned reads', readsAbandoned, 40, 0],
  ['reads of large events', readsLarge, 5, 200],
])('appends of others are answered during %s, and no read stays open', async (_, run, events, status) => {
  const end = new AbortController();
  const statuses: ReadStatuses = new Map();
  const attack = run({ httpUrl: base }, end.signal, 6, { statuses, events });
  await expect.poll(() => statuses.get(status) ?? 0, { timeout: 20_000 }).toBeGreaterThan(2);
  for (let n = 0; n < 5; n++) expect((await append(master, order.buyer, 'MEANWHILE', { n })).status).toBe(200);
  end.abort();
  await attack;
  await expect.poll(reads).toEqual({ running: 0, waiting: 0 });
});
