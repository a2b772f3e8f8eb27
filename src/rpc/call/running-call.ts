import type { Message } from '@bufbuild/protobuf';
import type { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import type { JsonNode } from '../../domain/json/json.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Call, Caller, CallSignature, EventBeyondRate } from '../../service/calls/call.ts';
import type { Entropy } from '../../service/calls/entropy.ts';
import type { Walk } from '../../service/walking/walk.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';

export type Transport = 'rest' | 'connect' | 'grpc';

export interface CallSupport {
  openWalk(call: RunningCall): Walk;
  /** Charges the cost of a part walk that has ended. */
  charge(call: RunningCall, walk: Walk): void;
  address(): string;
  /** See Call. */
  admitEvent(call: RunningCall): EventBeyondRate | null;
  eventRefused(call: RunningCall): void;
  /** The caller's signature was verified. */
  verified(call: RunningCall): void;
  /** Leaves an access record of a live stream. */
  recordAccess(call: RunningCall): void;
  /** See Call. */
  recordNamed(call: RunningCall): Promise<void> | undefined;
}

/** The rate limit keys of a caller. They are made once a call, because a stream needs them for each event. */
export interface Payer {
  /** An API key; or the actor that headers name, with the address, so that others cannot use up the entity's rate. */
  readonly key: string;
  /** The actor; with the address if headers alone name it. */
  readonly actor: string;
  /** The address of a caller whom headers alone name. null for others, and once a signature has verified. */
  unverifiedAddress: string | null;
  /** What the call took from the rate of that address. */
  addressTokens: number;
}

/** A call while it runs. The pipeline notes on it what the answer, the log and the metrics need. */
export class RunningCall implements Call {
  readonly endpoint: Endpoint;
  readonly transport: Transport;
  readonly requestId: string;
  readonly deadline: number;
  /** Monotonic time of the start, ms. */
  readonly startedMs: number;
  slot = -1;
  caller: Caller | null = null;
  signature: CallSignature | null = null;
  deliveryChain: string | null = null;
  commandKey: CommandKey | null = null;
  now: number;
  replayed = false;
  /** Set when a stream takes no more requests, or when a live stream ends: the error that it ends with. */
  ending: LedgerError | null = null;
  /** Since when a live stream waits until its caller takes more (monotonic, ms). null: it does not wait. */
  untakenSinceMs: number | null = null;
  /** null until the call first reads through it. */
  openedWalk: Walk | null = null;
  /** Whether the call was answered, by the handler or by the pipeline in its place. */
  answered = false;
  isVerified = false;
  /** null until the call first takes from the rate of its caller. */
  payer: Payer | null = null;
  /** null until it was read, and for bidirectional streams. */
  request: Message | null = null;
  parsed: Map<string, JsonNode> | null = null;
  /** Whether the call goes into the caller's access history, if it names a ledger. */
  isRecorded = true;
  /** Headers of every answer, errors too. */
  headers: [name: string, value: string][] = [];
  /** Headers of a successful answer. */
  answerHeaders: [name: string, value: string][] = [];
  ledgers: Set<string> | null = null;
  #entropy: Entropy;
  readonly #support: CallSupport;
  /** Whether the handler left its own access records, so that the answer leaves none. */
  hasRecorded = false;
  #abort: AbortController | null = null;
  #ended: Error | null = null;
  onAbort: (() => void) | null = null;

  constructor(
    endpoint: Endpoint,
    transport: Transport,
    requestId: string,
    now: number,
    deadline: number,
    startedMs: number,
    entropy: Entropy,
    support: CallSupport,
  ) {
    this.endpoint = endpoint;
    this.transport = transport;
    this.requestId = requestId;
    this.now = now;
    this.deadline = deadline;
    this.startedMs = startedMs;
    this.#entropy = entropy;
    this.#support = support;
  }

  /** From here on ids, bytes and the time are those of the call's first run. */
  repeat(entropy: Entropy, now: number): void {
    this.#entropy = entropy;
    this.now = now;
  }

  newId(): string {
    return this.#entropy.newId();
  }

  randomBytes(length: number): Buffer {
    return this.#entropy.randomBytes(length);
  }

  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#ended !== null) this.#abort.abort(this.#ended);
    }
    return this.#abort.signal;
  }

  get address(): string {
    return this.#support.address();
  }

  get walk(): Walk {
    this.openedWalk ??= this.#support.openWalk(this);
    return this.openedWalk;
  }

  async partWalk<T>(read: (walk: Walk) => Promise<T>): Promise<T> {
    const walk = this.#support.openWalk(this);
    try {
      return await read(walk);
    } finally {
      walk.end();
      this.#support.charge(this, walk);
    }
  }

  admitEvent(): EventBeyondRate | null {
    return this.#support.admitEvent(this);
  }

  eventRefused(): void {
    this.#support.eventRefused(this);
  }

  recordAccess(): void {
    this.hasRecorded = true;
    this.#support.recordAccess(this);
  }

  recordNamed(): Promise<void> | undefined {
    return this.#support.recordNamed(this);
  }

  endWith(error: LedgerError): void {
    if (this.#ended !== null || this.answered) return;
    this.ending = error;
    this.#end(error);
  }

  /** Ends the signal, because the caller has gone or the deadline has passed. */
  abort(reason: string): void {
    if (this.#ended === null) this.#end(new Error(reason));
  }

  #end(reason: Error): void {
    this.#ended = reason;
    this.#abort?.abort(reason);
    this.onAbort?.();
  }

  get aborted(): boolean {
    return this.#ended !== null;
  }

  get isStalled(): boolean {
    return this.untakenSinceMs !== null && performance.now() - this.untakenSinceMs >= limits.liveStalledLeastMs;
  }

  markReplayed(): void {
    this.replayed = true;
  }

  markVerified(): void {
    if (this.isVerified) return;
    this.isVerified = true;
    this.#support.verified(this);
  }

  takeJson(field: string): JsonNode | null {
    const node = this.parsed?.get(field) ?? null;
    this.parsed?.delete(field);
    return node;
  }

  setHeader(name: string, value: string): void {
    this.answerHeaders.push([name, value]);
  }

  named(ledgerId: string | null): void {
    this.ledgers ??= new Set();
    if (ledgerId !== null) this.ledgers.add(ledgerId);
  }
}
