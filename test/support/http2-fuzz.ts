import { SeededRandom } from '../simulation/random.ts';
import { attackerOf, type GrpcTarget } from './attacks/grpc-connections.ts';
import { callHeaders, data, frame, grpcMessage, settings, windowUpdate } from './attacks/http2-frames.ts';
import type { FuzzSeeds } from './fuzz-seeds.ts';
import { bearer } from './listening-node.ts';

const paths = [
  '/svc.v1.MasterService/AppendEvent',
  '/svc.v1.MasterService/AppendEvents',
  '/svc.v1.HealthService/GetHealth',
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/Watch',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/none',
  '',
];
const headerValues = [
  '',
  '1S',
  '-1S',
  '99999999H',
  'gzip',
  'identity',
  'application/grpc',
  'text/plain',
  'x'.repeat(5_000),
];
const headerNames = [
  'grpc-timeout',
  'grpc-encoding',
  'content-type',
  'authorization',
  'x-request-id',
  'te',
  ':path',
  'a b',
];

/** Framed messages, of which some are broken. */
function framed(random: SeededRandom): Buffer {
  const messages = Array.from({ length: random.between(0, 4) }, () => {
    const message = random.bytes(random.between(0, 200));
    const flag = random.chance(0.8) ? 0 : random.pick([1, 2, 0x80, 0xff]);
    const length = random.chance(0.8) ? message.length : random.pick([0, 1, 70_000, 2 ** 31, 2 ** 32 - 1]);
    return grpcMessage(message, flag, length);
  });
  return Buffer.concat(messages);
}

function headersOf(random: SeededRandom): Buffer {
  const more = random.chance(0.5) ? {} : { [random.pick(headerNames)]: random.pick(headerValues) };
  return callHeaders(random.pick(paths), more);
}

/** One thing that an HTTP/2 client may send, right or wrong. */
function anything(random: SeededRandom, nextStream: () => number, streams: number[]): Buffer {
  const known = streams.length === 0 ? 1 : random.pick(streams);
  switch (random.between(0, 9)) {
    case 0:
    case 1:
    case 2: {
      const id = random.chance(0.95) ? nextStream() : random.between(0, 20);
      streams.push(id);
      return frame(1, random.pick([4, 4, 4, 5, 0, 0xff]), id, headersOf(random));
    }
    case 3:
    case 4:
      return data(known, framed(random), random.chance(0.3));
    case 5:
      return frame(3, 0, known, random.chance(0.9) ? Buffer.from([0, 0, 0, 8]) : random.bytes(random.between(0, 8)));
    case 6:
      return random.chance(0.5)
        ? settings({ [random.between(0, 9)]: random.pick([0, 1, 65_535, 2 ** 31]) })
        : frame(4, 1, 0);
    case 7:
      return windowUpdate(random.chance(0.5) ? 0 : known, random.pick([0, 1, 70_000, 2 ** 31 - 1]));
    case 8:
      return frame(
        6,
        random.between(0, 1),
        0,
        random.chance(0.9) ? Buffer.alloc(8) : random.bytes(random.between(0, 12)),
      );
    default:
      // Any type, flags and stream, with a length that may lie.
      return Buffer.concat([
        frame(
          random.between(0, 255),
          random.between(0, 255),
          random.between(0, 30),
          random.bytes(random.between(0, 60)),
        ),
        random.chance(0.1) ? random.bytes(random.between(0, 20)) : Buffer.alloc(0),
      ]);
  }
}

/** A call with a credential in right frames, whose messages may be broken, and which may be left open or reset. */
function rightCall(random: SeededRandom, nextStream: () => number, streams: number[]): Buffer {
  const id = nextStream();
  streams.push(id);
  const bytes = random.chance(0.5) ? grpcMessage(Buffer.alloc(0)) : framed(random);
  return Buffer.concat([
    frame(1, 4, id, callHeaders(random.pick(paths.slice(0, 3)), bearer)),
    data(id, bytes, random.chance(0.8)),
    random.chance(0.1) ? frame(3, 0, id, Buffer.from([0, 0, 0, 8])) : Buffer.alloc(0),
  ]);
}

/** Whether most of a seed's connection is right calls: else hardly any gets past the framing, to a handler. */
const hasRightCalls = (seed: number): boolean => seed % 4 === 2;

/** Sends so many seeded frames, or right calls, on a connection of its own and ignores the answers. */
export async function fuzzConnection(
  target: GrpcTarget,
  random: SeededRandom,
  frames: number,
  isRight = false,
): Promise<void> {
  const over = new AbortController();
  const attacker = await attackerOf(target, over.signal, { windowBytes: random.pick([0, 100, 65_535]) });
  const streams: number[] = [];
  for (let sent = 0; sent < frames; sent += 1) {
    const make = isRight && random.chance(0.98) ? rightCall : anything;
    if (!(await attacker.send(make(random, attacker.nextStream, streams)))) break;
  }
  // Right calls come to their handlers before the connection ends.
  await new Promise((resolve) => setTimeout(resolve, isRight ? 100 : 5));
  over.abort();
}

/** Seeds that once found something, or that reach far: they run first. */
export const corpus: readonly number[] = [1, 2, 7, 24, 1_729, 65_537];

/** Fuzzes until the time is over, four connections at a time, each with a seed of its own. */
export async function fuzzFor(target: GrpcTarget, ms: number, seeds: FuzzSeeds): Promise<void> {
  const endMs = performance.now() + ms;
  const one = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const seed = seeds.next();
      await fuzzConnection(target, new SeededRandom(seed), 150, hasRightCalls(seed));
    }
  };
  await Promise.all([one(), one(), one(), one()]);
}
