import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { boundError, namesOf, trailerBounds } from '../../domain/error-bounds.ts';
import { asLedgerError, isRetryable, LedgerError, notFound } from '../../domain/errors.ts';
import type { AppendEventsRequest } from '../../gen/svc/v1/masters_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { LedgerNaming } from '../audit/ledger-naming.ts';
import type { AppendCall, Call, Caller } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { PreparedCommand } from '../idempotency/submit-once.ts';
import { appendedMessage, type EventAppender } from './append-event.ts';
import { OpenEvents } from './open-events.ts';
import { type LedgerLane, LedgerLanes, type Promised } from './stream-lanes.ts';
import type { StreamsMemory } from './stream-memory.ts';

/** The outcome of one event, as sent to the caller. */
interface Answer {
  readonly clientIndex: bigint;
  readonly outcome:
    | { case: 'appended'; value: { event: object; replayed: boolean } }
    | { case: 'error'; value: { code: string; message: string; details: string; resumeFrom?: bigint; cut?: string } };
}

/**
 * AppendEvents: verifies events concurrently and sends them to their ledgers in the order of the stream. Outcomes come
 * back in that order for each ledger, interleaved between ledgers. A refused event does not end the stream. Open events
 * are bounded and count in the node's memory budget: the stream is not read while its caller does not read outcomes.
 */
export function appendStream(appender: EventAppender, naming: LedgerNaming, memory: StreamsMemory, now: () => number) {
  return async function* (requests: AsyncIterable<AppendEventsRequest>, call: Call): AsyncIterable<Answer> {
    const stream = new AppendStream(appender, naming, memory, call, now);
    void stream.take(requests);
    try {
      yield* stream.answers();
    } finally {
      stream.close();
    }
  };
}

/** An outcome that waits to be sent. `length` is that of its event, in characters. */
interface Ready {
  readonly answer: Answer;
  readonly length: number;
  /** What the outcome counts for in the memory budget. */
  readonly bytes: number;
}

class AppendStream {
  readonly #appender: EventAppender;
  readonly #naming: LedgerNaming;
  readonly #call: Call;
  readonly #caller: Caller;
  readonly #now: () => number;
  readonly #markVerified = () => this.#call.markVerified();
  readonly #lanes: LedgerLanes;
  readonly #memory: StreamsMemory;
  #ready: Ready[] = [];
  /** With the outcome that is being sent. */
  #readyBytes = 0;
  readonly #open = new OpenEvents();
  #sent = 0;
  #ended = false;
  #closed = false;
  /** Whether the rate has just refused an event. */
  #waitsForRate = false;
  #failure: unknown = null;
  #wakeReader: (() => void) | null = null;
  #wakeWriter: (() => void) | null = null;

  constructor(appender: EventAppender, naming: LedgerNaming, memory: StreamsMemory, call: Call, now: () => number) {
    this.#memory = memory;
    this.#appender = appender;
    this.#naming = naming;
    this.#call = call;
    this.#lanes = new LedgerLanes(call.newId());
    this.#caller = callerOf(call);
    this.#now = now;
  }

  async take(requests: AsyncIterable<AppendEventsRequest>): Promise<void> {
    // Of an event that is not in a lane yet.
    let heldBytes = 0;
    try {
      for await (const request of requests) {
        const length = lengthOf(request);
        heldBytes = bytesOf(length);
        this.#memory.hold(this, heldBytes);
        // The lane must be known before any later event is looked at.
        const ledgerId = this.#appender.ledgerOf(request.uuid) ?? (await this.#appender.findLedger(request.uuid));
        if (this.#closed) break;
        this.#begin(request, ledgerId, length, heldBytes);
        heldBytes = 0;
        const full = this.#call.recordNamed();
        if (full !== undefined) await full;
        while (!this.#mayTake) {
          await new Promise<void>((resolve) => {
            this.#wakeReader = resolve;
          });
        }
      }
    } catch (error) {
      this.#failure = error;
    }
    this.#memory.hold(this, -heldBytes);
    this.#ended = true;
    this.#wakeWriter?.();
  }

  /** A closed stream drops what it takes, so it need not wait for room. */
  get #mayTake(): boolean {
    return this.#closed || (!this.#waitsForRate && this.#open.mayTake && this.#memory.mayTake(this));
  }

  #waitForRate(retryAfterMs: number): void {
    this.#waitsForRate = true;
    const goOn = (): void => {
      this.#waitsForRate = false;
      this.#wakeTaker();
    };
    setTimeout(goOn, Math.min(retryAfterMs, limits.streamRateWaitMs)).unref();
  }

  /** An event counts as open until its outcome is taken from here. */
  async *answers(): AsyncIterable<Answer> {
    for (;;) {
      for (let next = this.#ready.shift(); next !== undefined; next = this.#ready.shift()) {
        yield next.answer;
        this.#open.handedOut(next.length);
        this.#memory.hold(this, -next.bytes);
        this.#readyBytes -= next.bytes;
      }
      this.#wakeTaker();
      if (this.#ended && this.#open.count === 0) {
        if (this.#failure !== null) throw this.#failure;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
      this.#wakeWriter = null;
    }
  }

  /** The caller reads no more outcomes. Stops taking events; open events are released as they are settled. */
  close(): void {
    this.#closed = true;
    this.#ready = [];
    this.#memory.hold(this, -this.#readyBytes);
    this.#wakeTaker();
  }

  #begin(request: AppendEventsRequest, ledgerId: string | null, length: number, bytes: number): void {
    const lane = this.#lanes.of(ledgerId);
    const { clientIndex } = request;
    const beyondRate = this.#call.admitEvent();
    if (beyondRate !== null) this.#waitForRate(beyondRate.retryAfterMs);
    // Not prepared, because it costs the caller nothing. Events of absent masters share a lane, but no failure.
    const refusal = beyondRate?.error ?? (lane.failed && lane.id !== null ? behindFailure() : null);
    this.#open.taken(length);
    const takenAt = this.#now();
    const preparing =
      refusal === null
        ? this.#appender.prepare(this.#callOf(request, takenAt), request, request.idempotencyKey)
        : Promise.reject(refusal);
    const prepared = this.#named(request.uuid, preparing);
    prepared.catch(() => {});
    lane.waiting.push({ clientIndex, length, bytes, takenAt, prepared });
    if (!lane.sending) void this.#send(lane);
  }

  /** One event of the stream, as a call of its own. */
  #callOf({ actorSig, signingKeyId, deliveryChain }: AppendEventsRequest, now: number): AppendCall {
    const isSigned = actorSig !== undefined || signingKeyId !== undefined;
    return {
      requestId: this.#call.requestId,
      caller: this.#caller,
      signature: isSigned ? { keyId: signingKeyId ?? null, signature: actorSig ?? null } : null,
      deliveryChain: deliveryChain ?? null,
      commandKey: null,
      deadline: now + limits.callTimeoutMs,
      markVerified: this.#markVerified,
    };
  }

  /** Names the master's ledger for the stream's access record. */
  async #named(masterId: string, preparing: Promise<PreparedCommand>): Promise<PreparedCommand> {
    try {
      const prepared = await preparing;
      const noted = this.#naming.master(this.#call, masterId, false);
      if (noted !== undefined) await noted;
      return prepared;
    } catch (error) {
      // If an entity must sign, an event whose signature was not verified may come from anybody.
      if (!this.#caller.mustSign) await this.#naming.master(this.#call, masterId, true);
      throw error;
    }
  }

  /** Sends a lane's events one by one, each once it is verified. Does not wait for outcomes. */
  async #send(lane: LedgerLane): Promise<void> {
    lane.sending = true;
    for (let next = lane.waiting.shift(); next !== undefined; next = lane.waiting.shift()) {
      const promised = next;
      let outcome: Promise<CommandOutcome>;
      try {
        const prepared = await promised.prepared;
        outcome = lane.failed ? Promise.reject(behindFailure()) : this.#submit(lane, prepared);
      } catch (error) {
        lane.failed ||= isRetryable(asLedgerError(error));
        outcome = Promise.reject(error);
      }
      outcome.catch(() => {});
      lane.outcomes.push({ promised, outcome });
      if (!lane.answering) void this.#answerInOrder(lane);
    }
    lane.sending = false;
  }

  async #answerInOrder(lane: LedgerLane): Promise<void> {
    lane.answering = true;
    for (let next = lane.outcomes.shift(); next !== undefined; next = lane.outcomes.shift()) {
      await this.#answer(lane, next.promised, next.outcome);
    }
    lane.answering = false;
  }

  #submit(lane: LedgerLane, prepared: PreparedCommand): Promise<CommandOutcome> {
    if (prepared.kind === 'replayed') return Promise.resolve(prepared.first);
    // The master was created after the look-up. The event is refused: nothing would keep it in order with the ledger's
    // own lane.
    if (lane.id === null) return Promise.reject(notFound('master'));
    const index = this.#sent++;
    const previous = lane.open > 0 ? lane.lastSent : null;
    lane.lastSent = index;
    lane.open += 1;
    const outcome = prepared.submit({ id: lane.id, index, previous });
    outcome.then(
      () => {
        lane.open -= 1;
      },
      (error) => {
        // Set before another event can be sent on this lane.
        lane.failed ||= isRetryable(asLedgerError(error));
        lane.open -= 1;
      },
    );
    return outcome;
  }

  async #answer(lane: LedgerLane, promised: Promised, outcome: Promise<CommandOutcome>): Promise<void> {
    let answer: Answer;
    let isDone = true;
    try {
      const settled = await outcome;
      const value = { event: appendedMessage(settled), replayed: settled.replayed };
      answer = { clientIndex: promised.clientIndex, outcome: { case: 'appended', value } };
    } catch (thrown) {
      const error = asLedgerError(thrown, 'Something went wrong inside the service.');
      isDone = !isRetryable(error);
      if (isDone) this.#call.eventRefused();
      const isFirst = lane.resumeFrom === null;
      this.#call.eventFailed(promised.clientIndex, error, isFirst, this.#now() - promised.takenAt);
      answer = this.#refusal(lane, promised.clientIndex, error);
    }
    this.#open.settled(isDone ? this.#now() - promised.takenAt : Number.POSITIVE_INFINITY);
    this.#addReady(promised, answer);
  }

  /** Queues an outcome. Its event's own text is not in memory from here on. */
  #addReady({ length, bytes }: Promised, answer: Answer): void {
    const answerBytes = this.#closed ? 0 : bytesOf(lengthOfAnswer(answer));
    this.#memory.hold(this, answerBytes - bytes);
    if (this.#closed) return;
    this.#readyBytes += answerBytes;
    this.#ready.push({ answer, length, bytes: answerBytes });
    this.#wakeWriter?.();
  }

  #refusal(lane: LedgerLane, clientIndex: bigint, error: LedgerError): Answer {
    const { message, details, cut } = boundError(error.message, error.details, trailerBounds);
    const value = {
      code: error.code,
      message,
      details: JSON.stringify(details),
      ...(cut.length === 0 ? {} : { cut: namesOf(cut) }),
    };
    if (!isRetryable(error)) return { clientIndex, outcome: { case: 'error', value } };
    lane.resumeFrom ??= clientIndex;
    return { clientIndex, outcome: { case: 'error', value: { ...value, resumeFrom: lane.resumeFrom } } };
  }

  #wakeTaker(): void {
    this.#wakeReader?.();
    this.#wakeReader = null;
  }
}

/** Characters of the fields that a caller can make long. */
function lengthOf(request: AppendEventsRequest): number {
  const { uuid, eventType, payload, signingKeyId, actorSig, idempotencyKey, deliveryChain } = request;
  const optional = [signingKeyId, actorSig, idempotencyKey, deliveryChain];
  return optional.reduce((sum, text) => sum + (text?.length ?? 0), uuid.length + eventType.length + payload.length);
}

/** Characters. The rest of an outcome is short. */
function lengthOfAnswer({ outcome }: Answer): number {
  return outcome.case === 'error' ? outcome.value.message.length + outcome.value.details.length : 0;
}

/** Bytes of the objects of an event or its outcome, with their ids. */
const objectBytes = 1024;

/** Bytes that a text of this length takes: two a character, or one a character, twice, if it is ASCII. */
function bytesOf(length: number): number {
  return objectBytes + 2 * length;
}

function behindFailure(): LedgerError {
  return new LedgerError(
    'unavailable',
    'An event of this ledger before this one failed: resume from the index given, on a new stream.',
  );
}
