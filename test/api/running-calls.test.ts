import { expect, test } from 'vitest';
import { grpcClient } from '../support/grpc-client.ts';
import { newMaster, newOrder } from '../support/parties.ts';
import { openStream, streamed } from '../support/parties-stream.ts';
import { runNode } from '../support/running-node.ts';

test('a running call is counted in the metrics until it ends', async () => {
  // A node of its own, since others would count too.
  await using node = await runNode({ env: {} });
  const running = async () => {
    const text = await (await fetch(`${node.opsBase}/metrics`)).text();
    return Number(/^svc_running_calls (\d+)$/m.exec(text)?.[1]);
  };
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  expect(await running()).toBe(0);
  const client = grpcClient(node.grpcAddress);
  const stream = openStream(client, order.supplier);
  const ended = new Promise<void>((resolve) => stream.once('end', resolve));
  const answered = new Promise<void>((resolve) => stream.once('data', () => resolve()));
  stream.write(streamed(master, order.supplier, 0, { n: 1 }));
  await answered;
  expect(await running()).toBe(1);
  stream.on('data', () => {});
  stream.end();
  await ended;
  await expect.poll(running).toBe(0);
  client.close();
});
