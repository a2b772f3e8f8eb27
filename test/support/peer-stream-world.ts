import { EventEmitter } from 'node:events';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { vi } from 'vitest';
import { CountedTime } from '../../cluster/peers/counted-time.ts';
import { budgetMs, busyPeerBudgetMs } from '../../cluster/peers/grpc-peers.ts';
import { defaultPeerBounds, type ExchangeCall, type PeerBounds, PeerStream } from '../../cluster/peers/peer-stream.ts';
import { acceptedKey, clientWire } from '../../cluster/peers/wire.ts';
import { type Ask, ExchangeRequestSchema, ExchangeResponseSchema } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { type ManualClock, settled } from './clock.ts';

type AnswerInit = NonNullable<MessageInitShape<typeof ExchangeResponseSchema>['answers']>[number];

/** The grpc-js call of a PeerStream, whose other side is the test. */
class FarEnd extends EventEmitter {
  readonly asks: Ask[] = [];
  /** Whether the other side reads on after the next message. */
  reads = true;
  cancelled = false;

  write(frame: Buffer): boolean {
    this.asks.push(...fromBinary(ExchangeRequestSchema, frame).asks);
    return this.reads;
  }

  cancel(): void {
    this.cancelled = true;
  }

  end(): void {}

  accept(): void {
    const metadata = new Metadata();
    metadata.set(acceptedKey, 'node-a');
    this.emit('metadata', metadata);
  }

  answer(answer: AnswerInit): void {
    this.#tell({ answers: [answer] });
  }

  /** Reports that the peer gets commands of other nodes done. */
  works(): void {
    this.#tell({ works: true });
  }

  #tell(message: MessageInitShape<typeof ExchangeResponseSchema>): void {
    this.emit('data', Buffer.from(toBinary(ExchangeResponseSchema, create(ExchangeResponseSchema, message))));
  }
}

/** With certificates, frames are plain. */
const noTls = { ca: Buffer.alloc(0), cert: Buffer.alloc(0), key: Buffer.alloc(0) };
const stepMs = 50;

/** A PeerStream in fake time, with the bounds of a cluster. Needs `vi.useRealTimers()` after the test. */
export function streamWorld(
  clock: ManualClock,
  memory = new MemoryBudget(1024 * 1024 * 1024),
  bounds: PeerBounds = defaultPeerBounds,
) {
  const ownBatches = { confirmed: 0, running: 0 };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const far = new FarEnd();
  const stream = new PeerStream({
    call: far as unknown as ExchangeCall,
    wire: clientWire({ tls: noTls, secret: null }, 'node-b', 'node-a'),
    memory,
    bounds,
    monotonicMs: () => clock.now(),
    counted: new CountedTime(() => ownBatches, clock.now()),
    budgetMs,
    busyPeerBudgetMs,
    heard: () => {},
    ended: () => {},
  });
  /** Advances the time. `meanwhile` is called every 200 ms. */
  const pass = async (ms: number, meanwhile: () => void = () => {}) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      if (passed % 200 === 0) meanwhile();
      await clock.advance(stepMs);
      vi.advanceTimersByTime(stepMs);
      await settled();
    }
  };
  return { far, stream, ownBatches, pass };
}
