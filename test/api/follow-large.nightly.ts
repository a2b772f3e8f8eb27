import { expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { closeOf, newMaster } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';

vi.setConfig({ testTimeout: 600_000 });

/** A page that is filtered by type ends after it has examined this many events. */
const EXAMINED_MAX = 10_000;

const { node, base, order } = await nodeWithOrder({ keyed: false });

test('a closed ledger and its master of many events end for those who begin behind their last events', async () => {
  const { uuid } = await newMaster(order);
  const { apiKey } = order.buyer;
  const client = createClient({ baseUrl: base, grpcUrl: `http://${node.grpcAddress}`, transport: 'grpc', apiKey });
  onTestFinished(() => client.close());
  const events = Array.from({ length: EXAMINED_MAX + 1 }, (_, n) => ({ uuid, eventType: 'COUNTED', payload: { n } }));
  await using appending = client.appendStream();
  for await (const { error } of appending.appendAll(events)) expect(error).toBe(null);
  const { path, headers } = closeOf(order, order.buyer);
  await done(base, 'PATCH', path, { headers });
  const follows = [{ masterId: uuid, after: events.length }, { masterId: uuid }, { ledgerId: order.ledgerId }];
  for (const request of follows) {
    const onRetry = vi.fn();
    expect(await Array.fromAsync(client.follow(request, { onRetry }))).toEqual([]);
    expect(onRetry).not.toHaveBeenCalled();
  }
});
