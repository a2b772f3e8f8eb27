import { create, toBinary } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { AppendEventRequestSchema, AppendEventsRequestSchema } from '../../gen/svc/v1/masters_pb.ts';
import { deliveryChainJson } from '../call/call.ts';
import { type Credential, identityHeaders } from '../call/credential.ts';
import type { GrpcTransport } from '../call/grpc-transport.ts';
import { givenFields } from '../call/request-encoding.ts';
import { backoffMs, boundedHint, isNotSent, mayRetry, type RetryClock } from '../call/retry.ts';
import { endpointNamed } from '../endpoint.ts';
import { asClientError, LedgerTrustError } from '../error.ts';
import type { Facts } from '../signing/facts.ts';
import { appendEventInput } from '../signing/signed-calls.ts';
import { digestOf } from '../signing/signing.ts';
import type { Appended, AppendOutcome, AppendStream, AppendStreamOptions, StreamedEvent } from './append-api.ts';
import { type OpenEvent, runAppendConnection } from './append-connection.ts';

interface AppendStreamParts {
  readonly transport: GrpcTransport;
  readonly credential: Credential;
  readonly facts: Facts;
  readonly clock: RetryClock;
  newId(): string;
}

const endpoint = endpointNamed('appendEvents');

/** The largest request that the service accepts, bytes. A larger one would end the stream for all events in flight. */
export const requestMaxBytes = 1024 * 1024;

/** Invariant: `#open` holds every event without an outcome by its client index. Indices ascend. */
export class GrpcAppendStream implements AppendStream {
  readonly #parts: AppendStreamParts;
  readonly #maxInFlight: number;
  readonly #maxQueued: number;
  readonly #attemptsMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #open = new Map<number, OpenEvent>();
  #nextIndex = 0;
  #closed = false;
  #running: Promise<void> | null = null;
  #changed = Promise.withResolvers<void>();

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
      // Appended again, this event may still be written, and no later event may be written before it.
      const mayBeWritten = (error: unknown) => mayRetry(error, true) || isNotSent(error);
      open.request.catch((error) => (mayBeWritten(error) ? this.#rejectFrom(index, error) : open.reject(error)));
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

  /** Validates, signs and serializes an event. Events are prepared concurrently and sent in order. */
  async #request(index: number, event: StreamedEvent): Promise<Buffer> {
    const { idempotencyKey, deliveryChain, ...request } = event;
    givenFields(AppendEventRequestSchema, request);
    const { signer } = this.#parts.credential;
    const message = create(AppendEventsRequestSchema, {
      clientIndex: BigInt(index),
      uuid: request.uuid,
      eventType: request.eventType,
      payload: canonicalJson(request.payload),
      idempotencyKey: idempotencyKey ?? this.#parts.newId(),
      actorSig: await signer?.sign(digestOf(await appendEventInput(request, this.#parts.facts))),
      signingKeyId: signer?.keyId,
      deliveryChain: deliveryChain === undefined ? undefined : deliveryChainJson(deliveryChain),
    });
    const bytes = toBinary(AppendEventsRequestSchema, message);
    if (bytes.length > requestMaxBytes) {
      const text = `An event's request may have ${requestMaxBytes} bytes; this one has ${bytes.length}. It was not sent.`;
      throw new LedgerTrustError('payload_too_large', text, { details: { limit_bytes: requestMaxBytes } });
    }
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Opens one connection after the other while there is something to send. Never rejects. */
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
    let stream: ClientDuplexStream<Buffer, Buffer>;
    try {
      stream = await transport.duplex(endpoint.rpcPath, identityHeaders(credential, endpoint));
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
    const known = error instanceof LedgerTrustError ? boundedHint(error.retryAfterMs) : null;
    // An abort ends the wait early. The caller's loop handles it.
    await this.#parts.clock.sleep(backoffMs(attempt, known, this.#parts.clock.random), this.#signal).catch(() => {});
  }

  #rejectFrom(first: number, error: unknown): void {
    for (const [index, event] of [...this.#open]) if (index >= first) event.reject(error);
  }

  /** An event that was in flight when a connection was lost may be written, whatever the last error says. */
  #giveUp(error: unknown): void {
    for (const event of [...this.#open.values()]) event.reject(event.uncertain ?? error);
  }

  /** Resolves at the next change that a caller may wait for. */
  #change(): Promise<void> {
    return this.#changed.promise;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
