import type { LedgerError } from '../../domain/errors.ts';
import { addressKey } from '../../runtime/limits/address-key.ts';
import type { EventBeyondRate } from '../../service/calls/call.ts';
import { FreshEntropy, type Random } from '../../service/calls/entropy.ts';
import { Walk, type WalkParts } from '../../service/walking/walk.ts';
import type { BidiCall, IncomingCall } from '../call/incoming-call.ts';
import { requestIdOf } from '../call/request-id.ts';
import { RunningCall } from '../call/running-call.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { AnswerLog } from './answer-log.ts';
import { type CallRates, walkerOf } from './call-rates.ts';

export interface PipelineCallParts {
  readonly rates: CallRates;
  readonly walks: WalkParts;
  readonly answers: AnswerLog;
  readonly random: Random;
  now(): number;
  monotonicMs(): number;
}

/** Of REST and Connect, of streams of Connect, and of gRPC and gRPC-Web. */
const encodingHeaders = ['content-encoding', 'connect-content-encoding', 'grpc-encoding'];

/** A running call with what it takes from the pipeline. */
export class PipelineCall extends RunningCall {
  /** null until the call first reads through it. */
  openedWalk: Walk | null = null;
  readonly #parts: PipelineCallParts;
  readonly #incoming: IncomingCall;

  /** `timeoutMs`: how long the call may take, whatever the caller's own time is. */
  constructor(parts: PipelineCallParts, endpoint: Endpoint, incoming: IncomingCall, timeoutMs: number) {
    const now = parts.now();
    const entropy = new FreshEntropy(parts.random, now);
    const requestId = requestIdOf(incoming.header('x-request-id'), () => entropy.newId());
    const deadline = now + Math.min(incoming.timeoutMs, timeoutMs);
    super(endpoint, incoming.transport, requestId, now, deadline, parts.monotonicMs(), entropy);
    this.#parts = parts;
    this.#incoming = incoming;
  }

  get address(): string {
    return addressKey(this.#incoming.address());
  }

  get isCompressed(): boolean {
    return encodingHeaders.some((name) => (this.#incoming.header(name) ?? 'identity') !== 'identity');
  }

  admitUnknown(): void {
    this.#parts.rates.admitUnknown(this, this.#parts.monotonicMs());
  }

  get walk(): Walk {
    this.openedWalk ??= this.#newWalk();
    return this.openedWalk;
  }

  async partWalk<T>(read: (walk: Walk) => Promise<T>): Promise<T> {
    const walk = this.#newWalk();
    try {
      return await read(walk);
    } finally {
      this.endWalk(walk);
    }
  }

  #newWalk(): Walk {
    return new Walk(this.#parts.walks, walkerOf(this), this.signal);
  }

  /** Ends a walk of the call, and charges its cost to the caller. */
  endWalk(walk: Walk): void {
    walk.end();
    this.#parts.rates.charge(this, walk.cost, this.#parts.monotonicMs());
  }

  admitEvent(): EventBeyondRate | null {
    const { requests }: Partial<BidiCall> = this.#incoming;
    return this.#parts.rates.admitEvent(this, requests?.takenParts ?? 0, this.#parts.monotonicMs());
  }

  eventRefused(): void {
    this.#parts.rates.chargeRefusedEvent(this, this.#parts.monotonicMs());
  }

  eventFailed(clientIndex: bigint, error: LedgerError, isFirst: boolean, ms: number): void {
    this.#parts.answers.eventFailed(this, clientIndex, error, isFirst, ms);
  }

  recordAccess(): void {
    this.hasRecorded = true;
    this.#parts.answers.recordStream(this, this.#incoming);
  }

  recordNamed(): Promise<void> | undefined {
    return this.#parts.answers.recordNamed(this, this.#incoming);
  }

  markVerified(): void {
    if (this.isVerified) return;
    this.isVerified = true;
    this.#parts.rates.verified(this, this.#parts.monotonicMs());
  }
}
