import { expect } from 'vitest';
import { grpcClient } from './grpc-client.ts';
import type { Master, Order } from './parties.ts';
import { sendAll } from './parties-stream.ts';

const perStream = 5_000;
const streamsAtOnce = 4;

/** Appends events to an order without signing keys, over streams. `masterOf`: the master of the nth event. */
export async function appendMany(
  grpcAddress: string,
  { buyer }: Order,
  count: number,
  masterOf: (n: number) => Master,
): Promise<void> {
  const client = grpcClient(grpcAddress);
  const starts = Array.from({ length: Math.ceil(count / perStream) }, (_, at) => at * perStream).values();
  const sendParts = async () => {
    for (const start of starts) {
      const events = Array.from({ length: Math.min(perStream, count - start) }, (_, at) => ({
        clientIndex: BigInt(at),
        uuid: masterOf(start + at).uuid,
        eventType: 'NOTED',
        payload: JSON.stringify({ n: start + at }),
      }));
      const outcomes = await sendAll(client, buyer, events);
      expect(outcomes.filter(({ code }) => code !== null)).toEqual([]);
      expect(outcomes).toHaveLength(events.length);
    }
  };
  await Promise.all(Array.from({ length: streamsAtOnce }, sendParts));
  client.close();
}
