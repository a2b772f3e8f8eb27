import { create, toBinary } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { canonicalJson } from '../domain/canonical.ts';
import { AppendEventRequestSchema, AppendEventsRequestSchema } from '../gen/svc/v1/masters_pb.ts';
import { runAppendConnection } from './append-connection.ts';
import type { Appended, AppendOutcome, OpenEvent, StreamedEvent } from './append-event.ts';
import { deliveryChainJson } from './call.ts';
import { type Credential, identityHeaders } from './credential.ts';
import { endpointNamed } from './endpoint.ts';
import { asClientError, LedgerTrustError } from './error.ts';
import type { Facts } from './facts.ts';
import type { GrpcTransport } from './grpc-transport.ts';
import { givenFields } from './request-encoding.ts';
import { backoffMs, isNotSent, mayRetry, type RetryClock } from './retry.ts';
import { appendEventInput } from './signed-calls.ts';
import { digestOf } from './signing.ts';

export interface AppendStreamOptions {
  /** Events sent whose outcome is not there yet; 256 if not given. The service takes up to 512. */
  readonly maxInFlight?: number;
  /** Events taken and not settled, sent or not; beyond it `append` refuses. 10,000 if not given. */
  readonly maxQueued?: number;
  /** Connections in a row that bring no outcome, before the open events fail; 8 if not given. */
  readonly attemptsMax?: number;
  /** Ends the stream at once; open events reject with its reason, and may still be recorded. */
  readonly signal?: AbortSignal;
}

/**
 * Appends events in order over one gRPC stream (AppendEvents). Events of one ledger are decided in the order of `append`.
 * After a failure that a retry may mend the stream goes on by itself on a new connection from the first event that has no
 * outcome, with the same idempotency keys: nothing is lost, doubled or reordered.
 */
export interface AppendStream extends AsyncDisposable {
  /**
   * Takes an event and promises its outcome; a refused one (LedgerTrustError) does not end the stream. One that fails in a way that a retry
   * may mend takes with it what was given behind it, so that order holds: append all of them again.
   * One that was sent and may be written is told just that (`connection_lost`, `outcome_unknown`), also where what came later was refused.
   */
  append(event: StreamedEvent): Promise<Appended>;
  /** Resolves when the next event would be sent without waiting: await it before each `append` to be slowed down. */
  ready(): Promise<void>;
  /** Appends all and hands out their outcomes in the same order, taking no more than it can send. */
  appendAll(events: Iterable<StreamedEvent> | AsyncIterable<StreamedEvent>): AsyncIterable<AppendOutcome>;
  /** Takes no more events, and resolves when all outcomes are there. */
  close(): Promise<void>;
}

export interface AppendStreamParts {
  readonly transport: GrpcTransport;
  readonly credential: Credential;
  readonly facts: Facts;
  readonly clock: RetryClock;
  newId(): string;
}

const endpoint = endpointNamed('appendEvents');

/** The largest request that the service takes (decisions.md, section 3). A larger one would end the stream for all that are in flight. */
export const requestMaxBytes = 1024 * 1024;

export function openAppendStream(parts: AppendStreamParts, options: AppendStreamOptions): AppendStream {
  return new StreamOfAppends(parts, options);
}

/** Invariant: `#open` holds every unsettled event by its client index; indices rise, and stay with their event for good. */
class StreamOfAppends implements AppendStream {
  readonly #parts: AppendStreamParts;
  readonly #maxInFlight: number;
  readonly #maxQueued: number;
  readonly #attemptsMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #open = new Map<number, OpenEvent>();
  #nextIndex = 0;
  #closed = false;
  #running: Promise<void> | null = null;
  #wakers: (() => void)[] = [];

  constructor(parts: AppendStreamParts, options: AppendStreamOptions) {
    this.#parts = parts;
    this.#maxInFlight = options.maxInFlight ?? 256;
    this.#maxQueued = options.maxQueued ?? 10_000;
    this.#attemptsMax = options.attemptsMax ?? 8;
    this.#signal = options.signal;
    if (!(this.#maxInFlight >= 1 && this.#maxQueued >= this.#maxInFlight)) {
      throw new TypeError('maxInFlight must be at least 1, and maxQueued at least maxInFlight');
    }
    options.signal?.addEventListener('abort', () => this.#wake(), { once: true });
  }

  append(event: StreamedEvent): Promise<Appended> {
    if (this.#signal?.aborted) return Promise.reject(this.#signal.reason);
    if (this.#closed) return Promise.reject(new LedgerTrustError('not_sent', 'The append stream is closed.'));
    if (this.#open.size >= this.#maxQueued) {
      const message = `${this.#maxQueued} events are waiting already: await ready() before append().`;
      return Promise.reject(new LedgerTrustError('not_sent', message));
    }
    const index = this.#nextIndex++;
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        this.#open.delete(index);
        this.#wake();
      };
      const open: OpenEvent = {
        request: this.#request(index, event).catch((error) => Promise.reject(asClientError(error))),
        uncertain: null,
        resolve: (appended) => {
          settled();
          resolve(appended);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      // What would be written behind an event that may yet succeed would stand before it: so everything behind it fails with it.
      open.request.catch((error) => (mayYetSucceed(error) ? this.#rejectFrom(index, error) : open.reject(error)));
      this.#open.set(index, open);
      this.#wake();
      this.#running ??= this.#run();
    });
  }

  async ready(): Promise<void> {
    while (this.#open.size >= this.#maxInFlight && !this.#signal?.aborted) await this.#change();
    this.#signal?.throwIfAborted();
  }

  async *appendAll(events: Iterable<StreamedEvent> | AsyncIterable<StreamedEvent>): AsyncIterable<AppendOutcome> {
    const source = Symbol.asyncIterator in events ? events[Symbol.asyncIterator]() : events[Symbol.iterator]();
    const outcomes: Promise<AppendOutcome>[] = [];
    let pull: Promise<{ readonly pulled: IteratorResult<StreamedEvent> }> | null = null;
    let ended = false;
    const next = async () => ({ pulled: await source.next() });
    try {
      while (!ended || outcomes.length > 0) {
        if (!ended && outcomes.length < this.#maxInFlight) pull ??= next();
        const [head] = outcomes;
        const first = await Promise.race([...(pull === null ? [] : [pull]), ...(head === undefined ? [] : [head])]);
        if ('pulled' in first) {
          pull = null;
          if (first.pulled.done) ended = true;
          else {
            await this.ready();
            outcomes.push(this.#outcome(first.pulled.value));
          }
        } else {
          outcomes.shift();
          yield first;
        }
      }
    } finally {
      if (!ended) await source.return?.();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #outcome(event: StreamedEvent): Promise<AppendOutcome> {
    try {
      return { event, appended: await this.append(event), error: null };
    } catch (error) {
      return { event, appended: null, error };
    }
  }

  /** Checked and signed; events are made ready side by side and sent in order. */
  async #request(index: number, event: StreamedEvent): Promise<Buffer> {
    const { idempotencyKey, deliveryChain, ...request } = event;
    givenFields(AppendEventRequestSchema, request);
    const { signer } = this.#parts.credential;
    const input = signer === undefined ? null : await appendEventInput(request, this.#parts.facts);
    const message = create(AppendEventsRequestSchema, {
      clientIndex: BigInt(index),
      uuid: request.uuid,
      eventType: request.eventType,
      payload: canonicalJson(request.payload),
      idempotencyKey: idempotencyKey ?? this.#parts.newId(),
      ...(signer === undefined || input === null ? {} : { actorSig: await signer.sign(digestOf(input)) }),
      ...(signer?.keyId === undefined ? {} : { signingKeyId: signer.keyId }),
      ...(deliveryChain === undefined ? {} : { deliveryChain: deliveryChainJson(deliveryChain) }),
    });
    const bytes = toBinary(AppendEventsRequestSchema, message);
    if (bytes.length > requestMaxBytes) {
      const text = `An event's request may have ${requestMaxBytes} bytes; this one has ${bytes.length}. It was not sent.`;
      throw new LedgerTrustError('payload_too_large', text, { details: { limit_bytes: requestMaxBytes } });
    }
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** One connection after the other, as long as there is something to send. Never rejects. */
  async #run(): Promise<void> {
    let fruitless = 0;
    while (!(this.#closed && this.#open.size === 0)) {
      if (this.#signal?.aborted) {
        this.#rejectFrom(0, this.#signal.reason);
        break;
      }
      if (this.#open.size === 0) {
        await this.#change();
        continue;
      }
      const { error, settled } = await this.#connect();
      if (error === null || this.#open.size === 0) continue;
      fruitless = settled > 0 ? 0 : fruitless + 1;
      if (!mayRetry(error, true) || fruitless >= this.#attemptsMax) this.#giveUp(error);
      else await this.#pause(fruitless + 1, error);
    }
    this.#running = null;
  }

  async #connect(): Promise<{ readonly error: unknown; readonly settled: number }> {
    const { transport, credential } = this.#parts;
    const headers = identityHeaders(credential, endpoint);
    let stream: ClientDuplexStream<Buffer, Buffer>;
    try {
      stream = transport.duplex(endpoint.rpcPath, headers);
    } catch (error) {
      return { error, settled: 0 };
    }
    return runAppendConnection({
      stream,
      open: this.#open,
      maxInFlight: this.#maxInFlight,
      nextIndex: () => this.#nextIndex,
      ended: () => this.#closed,
      signal: this.#signal,
      change: () => this.#change(),
      wake: () => this.#wake(),
    });
  }

  async #pause(attempt: number, error: unknown): Promise<void> {
    const known = error instanceof LedgerTrustError ? error : null;
    // An abort ends the wait early; the loop then sees it.
    await this.#parts.clock.sleep(backoffMs(attempt, known, this.#parts.clock.random), this.#signal).catch(() => {});
  }

  #rejectFrom(first: number, error: unknown): void {
    for (const [index, event] of [...this.#open]) if (index >= first) event.reject(error);
  }

  /** What a lost connection took with it may be written, whatever the later ones were told. */
  #giveUp(error: unknown): void {
    for (const event of [...this.#open.values()]) event.reject(event.uncertain ?? error);
  }

  /** Resolves at the next change of anything that somebody may wait for. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#wakers.push(resolve));
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}

/** Given again: also to another client, where this one is closed. */
function mayYetSucceed(error: unknown): boolean {
  return mayRetry(error, true) || isNotSent(error);
}
