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

/** A call while it runs. The pipeline, whose PipelineCall it is, notes on it what answer, log and metrics need. */
export abstract class RunningCall implements Call {
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
  /** Whether the call was answered, by the handler or by the pipeline in its place. */
  answered = false;
  isVerified = false;
  /** Whether its address paid for looking up its credential. */
  paidAsUnknown = false;
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
  ) {
    this.endpoint = endpoint;
    this.transport = transport;
    this.requestId = requestId;
    this.now = now;
    this.deadline = deadline;
    this.startedMs = startedMs;
    this.#entropy = entropy;
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

  abstract get address(): string;
  abstract get isCompressed(): boolean;
  abstract admitUnknown(): void;
  abstract get walk(): Walk;
  abstract partWalk<T>(read: (walk: Walk) => Promise<T>): Promise<T>;
  abstract admitEvent(): EventBeyondRate | null;
  abstract eventRefused(): void;
  abstract eventFailed(clientIndex: bigint, error: LedgerError, isFirst: boolean, ms: number): void;
  abstract recordAccess(): void;
  abstract recordNamed(): Promise<void> | undefined;
  abstract markVerified(): void;

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
