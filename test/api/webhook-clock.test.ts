import { afterEach, expect, test, vi } from 'vitest';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { rest } from '../support/parties-rest.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { minute } from '../support/webhook-order.ts';
import { receiveWebhooks } from '../support/webhook-receiver.ts';

const dataDir = suiteDir();

const machineNow = Date.now;
afterEach(() => void vi.restoreAllMocks());

/** Sets the machine's clock ahead by this time, or back if it is negative. */
function setClock(byMs: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => machineNow() + byMs);
}

async function orderWithMaster(base: string) {
  const order = await newOrder(base, { keyed: false });
  return { order, master: await newMaster(order) };
}

test('a clock that is set back, while a node runs or is stopped, loses no event behind a subscription', async () => {
  await using receiver = await receiveWebhooks();
  const typesReceived = () => receiver.received.map(({ event }) => event.event_type);
  const first = await runNode({ dataDir });
  // One event a ledger at most: a later one would not be dated before it.
  const [stepped, restarted] = [await orderWithMaster(first.base), await orderWithMaster(first.base)];
  setClock(60 * minute);
  for (const { order } of [stepped, restarted]) {
    const headers = order.buyer.bearer;
    const made = await rest(first.base, 'POST', '/v1/webhooks', { headers, body: { url: receiver.url } });
    expect(made.status).toBe(200);
  }
  setClock(30 * minute);
  expect((await append(stepped.master, stepped.order.buyer, 'AFTER_STEP', {})).status).toBe(200);
  await receiver.until(1);
  await first.stop();

  setClock(0);
  await using next = await runNode({ dataDir });
  const master = { ...restarted.master, base: next.base };
  expect((await append(master, restarted.order.buyer, 'AFTER_RESTART', {})).status).toBe(200);
  await receiver.until(2);
  expect(typesReceived()).toEqual(['AFTER_STEP', 'AFTER_RESTART']);
  expect(next.lines.join('\n')).toContain('the clock of this machine is');
});

test('a metric shows how far a node is ahead of the clock of its machine', async () => {
  await using node = await runNode();
  const aheadSeconds = async () => {
    const metrics = await (await fetch(`${node.opsBase}/metrics`)).text();
    return Number(/^svc_clock_ahead_seconds (\S+)$/m.exec(metrics)?.[1]);
  };
  setClock(60 * minute);
  expect(await aheadSeconds()).toBe(0);
  setClock(0);
  expect(await aheadSeconds()).toBeGreaterThan(3_500);
});
