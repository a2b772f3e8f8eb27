import { expect, test } from 'vitest';
import { startNodeProcess } from '../support/node-process.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, testDir } from '../support/running-node.ts';
import { eventually, receiveWebhooks } from '../support/webhook-receiver.ts';

test('after kill -9 every answered event is delivered, and no recorded delivery is repeated', async () => {
  const dataDir = testDir();
  await using receiver = await receiveWebhooks();
  const answered = new Set<string>();
  let [id, bearer]: [string, Record<string, string>] = ['', {}];
  const deliveries = async (base: string) =>
    (await done(base, 'GET', `/v1/webhooks/${id}/deliveries?limit=1000`, { headers: bearer })).rows('deliveries');
  let recorded: unknown[] = [];
  {
    await using node = await startNodeProcess({ DATA_DIR: dataDir });
    const order = await newOrder(node.base, { keyed: false });
    const master = await newMaster(order);
    bearer = { ...order.buyer.bearer };
    const body = { url: receiver.url, event_types: ['STEP'] };
    id = (await done(node.base, 'POST', '/v1/webhooks', { headers: bearer, body })).text('id');
    const appendOne = async () => {
      const answer = await append(master, order.supplier, 'STEP', {}).catch(() => null);
      if (answer?.status === 200) answered.add(answer.text('event_id'));
    };
    for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 10 }, appendOne));
    await eventually(
      () => deliveries(node.base),
      (all) => all.some(({ status }) => status === 'DELIVERED'),
    );
    // More events than can be delivered before the process is killed.
    const last = Promise.all(Array.from({ length: 60 }, appendOne));
    recorded = (await deliveries(node.base))
      .filter(({ status }) => status === 'DELIVERED')
      .map(({ event_id }) => event_id);
    await eventually(
      async () => answered.size,
      (size) => size > 100,
    );
    await node.kill();
    await last;
  }
  const before = receiver.received.length;
  expect(answered.size).toBeGreaterThan(100);
  await using node = await runNode({ dataDir });
  const arrived = () => new Set(receiver.received.map(({ event }) => String(event.id)));
  await eventually(
    async () => arrived().size,
    () => [...answered].every((eventId) => arrived().has(eventId)),
  );
  const all = await eventually(
    () => deliveries(node.base),
    (found) => found.every(({ status }) => status === 'DELIVERED'),
  );
  expect(all.length).toBeGreaterThanOrEqual(answered.size);
  const again = new Set(receiver.received.slice(before).map(({ event }) => event.id));
  expect(recorded.filter((eventId) => again.has(eventId))).toEqual([]);
  expect(recorded.length).toBeGreaterThan(0);
  // First arrivals are in the order of the ledger.
  const seqs: number[] = [];
  for (const { event } of receiver.received) if (!seqs.includes(Number(event.seq))) seqs.push(Number(event.seq));
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
}, 60_000);

test('waiting deliveries are sent after a clean stop and a start', async () => {
  const dataDir = testDir();
  await using receiver = await receiveWebhooks();
  receiver.answer = null;
  const node = await startNodeProcess({ DATA_DIR: dataDir });
  const order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  const body = { url: receiver.url, event_types: ['STEP'] };
  const made = await done(node.base, 'POST', '/v1/webhooks', order.buyer, body);
  for (let at = 0; at < 3; at++) await append(master, order.supplier, 'STEP', { at });
  await receiver.until(1);
  const stopping = node.terminate();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await receiver[Symbol.asyncDispose]();
  expect((await stopping).code).toBe(0);

  await using again = await receiveWebhooks(Number(new URL(receiver.url).port));
  await using next = await runNode({ dataDir });
  await again.until(2);
  const listed = await eventually(
    async () =>
      (await done(next.base, 'GET', `/v1/webhooks/${made.text('id')}/deliveries`, order.buyer)).rows('deliveries'),
    (all) => all.filter(({ status }) => status === 'DELIVERED').length === 2,
  );
  // The attempt that was running has failed, and the delivery waits for its retry.
  expect(listed[0]).toMatchObject({ status: 'PENDING', attempt: 0 });
}, 60_000);
