import { createClient } from '../../src/client/index.ts';
import type { Master, Order } from './parties.ts';

const maxInFlight = 1_000;

/** Appends events to an order without signing keys, over a stream. `masterOf`: the master of the nth event. */
export async function appendMany(
  address: { readonly baseUrl: string; readonly grpcUrl: string },
  { buyer }: Order,
  count: number,
  masterOf: (n: number) => Master,
): Promise<void> {
  await using client = createClient({ ...address, apiKey: buyer.apiKey });
  await using stream = client.appendStream({ maxInFlight });
  const appended: Promise<unknown>[] = [];
  for (let n = 0; n < count; n += 1) {
    await stream.ready();
    appended.push(stream.append({ uuid: masterOf(n).uuid, eventType: 'NOTED', payload: { n } }));
  }
  await Promise.all(appended);
}
