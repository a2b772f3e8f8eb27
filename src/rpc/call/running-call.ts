import type { Message } from '@bufbuild/protobuf';
import type { LedgerError } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event.ts';
import type { JsonNode } from '../../domain/json.ts';
import type { Call, Caller, CallSignature } from '../../service/call.ts';
import type { Walk } from '../../service/walk.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Entropy } from './entropy.ts';
import type { Transport } from './transport.ts';

/** Makes the walk of a call. */
export type OpenWalk = (call: RunningCall) => Walk;

/**
 * A call while it runs: what its handler sees of it, and what the pipeline notes for the answer, the log and the
 * metrics.
 */
export class RunningCall implements Call {
  readonly endpoint: Endpoint;
  readonly transport: Transport;
  readonly requestId: string;
  readonly deadline: number;
  /** Monotonic time of its start. */
  readonly startedMs: number;
  /** Where the register of running calls has it. */
  slot = -1;
  caller: Caller | null = null;
  signature: CallSignature | null = null;
  deliveryChain: string | null = null;
  command: CommandKey | null = null;
  now: number;
  replayed = false;
  /** What a stream ends with that takes no more requests. */
  ending: LedgerError | null = null;
  /** Its walk, once something was read through it. */
  openedWalk: Walk | null = null;
  /** The answer was given, by the handler or in its place. */
  answered = false;
  /** A signature of its caller's was verified. */
  isVerified = false;
  /** Its one request, once that was read. */
  request: Message | null = null;
  parsed: Map<string, JsonNode> | null = null;
  /** Whether its answer goes into its caller's access history, where it names something. */
  isRecorded = true;
  /** Headers that any answer carries. */
  headers: [name: string, value: string][] = [];
  /** Headers of a successful answer. */
  answerHeaders: [name: string, value: string][] = [];
  ledgers: Set<string> | null = null;
  #entropy: Entropy;
  readonly #openWalk: OpenWalk;
  #abort: AbortController | null = null;
  #ended: string | null = null;
  /** Called at the end of the signal by one who waits for something that may never come; costs less than the signal. */
  onAbort: (() => void) | null = null;

  constructor(
    endpoint: Endpoint,
    transport: Transport,
    requestId: string,
    now: number,
    deadline: number,
    startedMs: number,
    entropy: Entropy,
    openWalk: OpenWalk,
  ) {
    this.endpoint = endpoint;
    this.transport = transport;
    this.requestId = requestId;
    this.now = now;
    this.deadline = deadline;
    this.startedMs = startedMs;
    this.#entropy = entropy;
    this.#openWalk = openWalk;
  }

  /** Ids, bytes and the time come from the call's first run from here on. */
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

  /** Made when it is first asked for: most calls never do. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#ended !== null) this.#abort.abort(new Error(this.#ended));
    }
    return this.#abort.signal;
  }

  /** Most calls read nothing that is long, and never have one. */
  get walk(): Walk {
    this.openedWalk ??= this.#openWalk(this);
    return this.openedWalk;
  }

  /** The caller has gone, or the deadline has passed: ends the signal. */
  abort(reason: string): void {
    if (this.#ended !== null) return;
    this.#ended = reason;
    this.#abort?.abort(new Error(reason));
    this.onAbort?.();
  }

  get aborted(): boolean {
    return this.#ended !== null;
  }

  markReplayed(): void {
    this.replayed = true;
  }

  markVerified(): void {
    this.isVerified = true;
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
