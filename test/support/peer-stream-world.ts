import { EventEmitter } from 'node:events';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { vi } from 'vitest';
import { CountedTime } from '../../cluster/peers/counted-time.ts';
import { acceptedKey } from '../../cluster/peers/exchange-method.ts';
import { budgetMs, patienceMs } from '../../cluster/peers/grpc-peers.ts';
import { type ExchangeCall, type PeerQueue, PeerStream } from '../../cluster/peers/peer-stream.ts';
import {
  type Ask,
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { type ManualClock, settled } from './clock.ts';

type AnswerInit = NonNullable<MessageInitShape<typeof ExchangeResponseSchema>['answers']>[number];

/** The near end of a stream, at whose far end a test does what it likes. */
export class FarEnd extends EventEmitter {
  readonly asks: Ask[] = [];
  /** Whether the far end reads on after the next message. */
  reads = true;
  cancelled = false;

  write(request: ExchangeRequest): boolean {
    this.asks.push(...request.asks);
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

  /** Says that it carries out what others asked for. */
  works(): void {
    this.#tell({ works: true });
  }

  #tell(message: MessageInitShape<typeof ExchangeResponseSchema>): void {
    const response: ExchangeResponse = create(ExchangeResponseSchema, message);
    this.emit('data', response);
  }
}

const stepMs = 50;

/** A stream with the bounds of a cluster, in a test's time; `ownTurns` are this node's. Wants `vi.useRealTimers()` afterwards. */
export function streamWorld(clock: ManualClock, queue?: PeerQueue) {
  const ownTurns = { stood: 0, running: 0 };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const far = new FarEnd();
  const stream = new PeerStream({
    call: far as unknown as ExchangeCall,
    monotonicMs: () => clock.now(),
    counted: new CountedTime(() => ownTurns, clock.now()),
    budgetMs,
    patienceMs,
    ...(queue === undefined ? {} : { queue }),
    ended: () => {},
  });
  /** Lets time pass; `meanwhile` is called every 200 ms of it. */
  const pass = async (ms: number, meanwhile: () => void = () => {}) => {
    for (let passed = 0; passed < ms; passed += stepMs) {
      if (passed % 200 === 0) meanwhile();
      await clock.advance(stepMs);
      vi.advanceTimersByTime(stepMs);
      await settled();
    }
  };
  return { far, stream, ownTurns, pass };
}
