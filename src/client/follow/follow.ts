import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import type { Integrity } from '../../gen/svc/v1/event_pb.ts';
import type { Caller } from '../call/call.ts';
import { backoffMs, boundedHint, mayRetry, type RetryClock } from '../call/retry.ts';
import { endpointNamed } from '../endpoint.ts';
import { connectionEnded, LedgerTrustError } from '../error.ts';
import type { Event } from '../event.ts';
import type { ProofReader } from '../proofs/proof-reading.ts';
import type { Answer } from '../shapes.ts';
import { createSingleEvents, type SingleEvents } from '../single-events.ts';
import type { LiveMessage } from '../transport.ts';
import type { SignatureCheck } from '../verify/verify-signature.ts';
import { CheckedEvents } from './checked-events.ts';
import { closes, findClosing } from './closing.ts';
import type {
  FollowedEvent,
  FollowHead,
  FollowIssues,
  Following,
  FollowOptions,
  FollowPlace,
  FollowRequest,
} from './follow-api.ts';
import { createLiveSignatureCheck } from './follow-keys.ts';
import { HeartbeatCheckpoints } from './heartbeat-checkpoints.ts';

/** Three heartbeats of the service. */
const SILENCE_MAX_MS = 45_000;
/** A stream that lived this long, or brought an event, counts as a success: the next wait is short again. */
const STEADY_MS = 10_000;

export interface FollowParts {
  readonly caller: Caller;
  /** Verifies checkpoints, and keeps them. */
  readonly proofs: Pick<ProofReader, 'takeNote' | 'proveEvent' | 'proveRecord'>;
  readonly clock: RetryClock;
  /** How often the first connection is tried. */
  readonly attemptsMax: number;
  /** Aborts when the client is closed. */
  readonly closing: AbortSignal;
}

export function createFollowing(parts: FollowParts): Following {
  return {
    follow(request, options = {}) {
      checkRequest(request);
      return new Follower(parts, request, options).events();
    },
  };
}

/** Throws TypeError for a request that names nothing, or no place of an event. */
function checkRequest({ ledgerId, masterId, after }: FollowRequest): void {
  if (ledgerId === undefined && masterId === undefined) throw new TypeError('ledgerId or masterId must be given');
  if (after === undefined) return;
  const place = placeOf(masterId, after);
  if (place === null || !Number.isSafeInteger(place) || place < -1)
    throw new TypeError('after must be the place of an event, or -1');
}

function placeOf(masterId: string | undefined, after: number | FollowPlace): number | null {
  if (typeof after === 'number') return after;
  return masterId === undefined ? after.seq : after.masterSeq;
}

/**
 * How a stream ended without an error. 'closed': what is followed is closed. 'early': it sent messages, and no closing.
 * 'unfounded': it sent no message, and the service shows no closing.
 */
type StreamEnd = 'closed' | 'early' | 'unfounded';

class Follower {
  readonly #parts: FollowParts;
  readonly #request: FollowRequest;
  readonly #options: FollowOptions;
  readonly #ending = new AbortController();
  readonly #reader: SingleEvents;
  readonly #checkSignature: SignatureCheck;
  readonly #checked: CheckedEvents;
  readonly #checkpoints: HeartbeatCheckpoints;
  /** Behind which event following began. */
  #began: number;
  /** Behind which event the stream is opened. */
  #place: number;
  #isCaughtUp = false;
  /** The closing of what is followed was handed out, or was read and checked. */
  #isClosed = false;
  /** A stream has brought a message. */
  #hasConnected = false;
  #failures = 0;

  constructor(parts: FollowParts, request: FollowRequest, options: FollowOptions) {
    this.#parts = parts;
    this.#request = request;
    this.#options = options;
    const { signal } = this.#ending;
    this.#reader = createSingleEvents(parts.caller, { signal });
    this.#checkSignature = createLiveSignatureCheck(parts.caller, options, signal, () => parts.clock.monotonicMs());
    this.#checked = new CheckedEvents({
      request,
      checkSignature: this.#checkSignature,
      masterEventBefore: ({ masterId, masterSeq }) =>
        masterId === null || masterSeq === null
          ? Promise.resolve(null)
          : this.#reader.masterEvent(masterId, masterSeq - 1),
    });
    this.#checkpoints = new HeartbeatCheckpoints({
      request,
      proofs: parts.proofs,
      ending: this.#ending,
      contradicted: (checkpoint) => this.#reportContradicted(checkpoint),
    });
    this.#began = placeOf(request.masterId, request.after ?? -1) ?? -1;
    this.#place = this.#began;
  }

  async *events(): AsyncGenerator<FollowedEvent> {
    const signals = [this.#options.signal, this.#parts.closing].filter((signal) => signal !== undefined);
    const end = (): void => this.#ending.abort(signals.find(({ aborted }) => aborted)?.reason);
    for (const signal of signals) signal.addEventListener('abort', end, { once: true });
    if (signals.some(({ aborted }) => aborted)) end();
    try {
      yield* this.#streams();
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', end);
      this.#ending.abort();
    }
  }

  async *#streams(): AsyncGenerator<FollowedEvent> {
    this.#ending.signal.throwIfAborted();
    await this.#begin();
    while (!this.#isClosed) {
      const startedMs = this.#parts.clock.monotonicMs();
      let error: LedgerTrustError;
      try {
        const end = yield* this.#stream();
        if (end === 'closed') break;
        error = end === 'early' ? connectionEnded() : unfoundedEnd();
      } catch (thrown) {
        this.#ending.signal.throwIfAborted();
        if (!mayRetry(thrown, true)) throw thrown;
        error = thrown;
      }
      if (this.#isClosed) break;
      if (this.#parts.clock.monotonicMs() - startedMs >= STEADY_MS) this.#failures = 0;
      this.#failures += 1;
      if (!this.#hasConnected && this.#failures >= this.#parts.attemptsMax) throw error;
      await this.#wait(error);
      this.#ending.signal.throwIfAborted();
    }
    await this.#endWell();
  }

  /** Finds the event that following begins behind, so that the link of the first event can be checked. */
  async #begin(): Promise<void> {
    const { masterId, ledgerId = '', after, segment = false } = this.#request;
    if (after === -1) return;
    const isFromNow = after === undefined;
    const event = isFromNow ? await this.#newest() : await this.#eventAt(this.#place);
    if (event === null) {
      if (segment && masterId === undefined && !isFromNow) return;
      const what = masterId === undefined ? `ledger ${ledgerId}` : `master ${masterId}`;
      const place = isFromNow ? '' : ` at ${this.#place}`;
      throw new LedgerTrustError('invalid_argument', `after: there is no event${place} in ${what} that you may read.`, {
        details: { field: 'after' },
      });
    }
    this.#report(await this.#checked.beginBehind(event, typeof after === 'object' ? after : null), event);
    this.#began = (masterId === undefined ? event.seq : event.masterSeq) ?? this.#place;
    this.#place = this.#began;
    this.#isClosed = closes(event, this.#request);
    this.#checkpoints.beginBehind(event);
  }

  #newest(): Promise<Event | null> {
    const { masterId, ledgerId = '' } = this.#request;
    return masterId === undefined ? this.#reader.newestOfLedger(ledgerId) : this.#reader.newestOfMaster(masterId);
  }

  #eventAt(place: number): Promise<Event | null> {
    const { masterId, ledgerId = '' } = this.#request;
    return masterId === undefined
      ? this.#reader.ledgerEvent(ledgerId, place)
      : this.#reader.masterEvent(masterId, place);
  }

  /** Opens the stream once, behind the last event. Throws why it ended. */
  async *#stream(): AsyncGenerator<FollowedEvent, StreamEnd> {
    const attempt = new AbortController();
    const end = (): void => attempt.abort(this.#ending.signal.reason);
    this.#ending.signal.addEventListener('abort', end, { once: true });
    const messages = this.#open(attempt.signal)[Symbol.asyncIterator]();
    let isEmpty = true;
    try {
      for (;;) {
        // A checkpoint may have been refused meanwhile.
        this.#ending.signal.throwIfAborted();
        const { done, value: message } = await this.#next(messages, attempt);
        if (done && isEmpty) this.#isClosed = await this.#isClosedHere();
        if (done) return this.#isClosed ? 'closed' : isEmpty ? 'unfounded' : 'early';
        this.#hasConnected = true;
        isEmpty = false;
        const event = await this.#take(message);
        if (event !== null) yield event;
      }
    } finally {
      this.#ending.signal.removeEventListener('abort', end);
      attempt.abort();
      await messages.return?.();
    }
  }

  /**
   * Whether following is over, where the service says so by a stream without any message. Reports what is wrong with
   * the closing.
   */
  async #isClosedHere(): Promise<boolean> {
    const { masterId, ledgerId = this.#checked.last?.ledgerId } = this.#request;
    if (ledgerId === undefined) return false;
    const { proofs } = this.#parts;
    const parts = { reader: this.#reader, proofs, checkSignature: this.#checkSignature, signal: this.#ending.signal };
    const found = await findClosing(parts, { ledgerId, masterId, began: this.#began, place: this.#place });
    if (found === null) return false;
    if (found !== 'unreadable') this.#report(found.issues, found.event);
    return true;
  }

  #open(signal: AbortSignal): AsyncIterable<LiveMessage> {
    const { masterId: uuid, ledgerId } = this.#request;
    const { caller } = this.#parts;
    return uuid === undefined
      ? caller.live(endpointNamed('followLedgerEvents'), { ledgerId, afterSeq: this.#place }, signal)
      : caller.live(endpointNamed('followMasterEvents'), { uuid, afterMasterSeq: this.#place }, signal);
  }

  /** The next message. Ends the attempt if none comes for too long: a dead connection does not say so. */
  async #next(
    messages: AsyncIterator<LiveMessage>,
    attempt: AbortController,
  ): Promise<IteratorResult<LiveMessage, undefined>> {
    const silence = setTimeout(() => attempt.abort(connectionEnded()), this.#options.silenceMaxMs ?? SILENCE_MAX_MS);
    try {
      return await messages.next();
    } finally {
      clearTimeout(silence);
    }
  }

  /** Takes a message. Returns the event to hand out, if it is one. */
  async #take({ kind, value }: LiveMessage): Promise<FollowedEvent | null> {
    if (kind !== 'event') {
      const head = value.head as FollowHead;
      const { last } = this.#checked;
      if (last !== null) this.#report(this.#checked.headIssues(head, kind === 'caughtUp' && !this.#isClosed), last);
      if (kind === 'caughtUp') this.#tellCaughtUp(head);
      if (typeof value.checkpoint === 'string') this.#checkpoints.keep(value.checkpoint);
      return null;
    }
    const received = value.event as Event;
    const { event, issues } = await this.#checked.take(received, (value.integrity as Answer<Integrity>).issues);
    this.#report(issues, received);
    if (event === null) return null;
    this.#checkpoints.take(event);
    const { masterId } = this.#request;
    this.#place = (masterId === undefined ? event.seq : event.masterSeq) ?? this.#place;
    this.#isClosed ||= closes(event, this.#request);
    this.#failures = 0;
    return event;
  }

  /** Throws `integrity_failed` if there are issues and nobody else is told of them. */
  #report(issues: FollowIssues, event: Event): void {
    const [first] = issues;
    if (first === undefined) return;
    const { onIssues } = this.#options;
    if (onIssues !== undefined) {
      onIssues(issues, event);
      return;
    }
    const what = first.eventId === '' ? 'What was handed out' : `Event ${event.id} (seq ${event.seq})`;
    throw new LedgerTrustError(
      'integrity_failed',
      `${what} does not verify: ${first.detail}. Keep what you have, and escalate it.${this.#advice(first.type)}`,
      { details: { issues, event_id: event.id, seq: event.seq } },
    );
  }

  #advice(type: string): string {
    const { masterId, segment } = this.#request;
    if (type !== 'missing_event' || masterId !== undefined || segment) return '';
    return ' If you may read only some masters of the ledger, follow it as a segment.';
  }

  /** The checkpoint is of all events up to its size, so no single one of them is to blame. */
  #reportContradicted({ size }: Checkpoint): void {
    const { last } = this.#checked;
    if (last === null) return;
    const detail = `the first ${size} events do not have the root of the checkpoint that the service signed`;
    this.#report([{ eventId: '', type: 'wrong_checkpoint', detail }], last);
  }

  #tellCaughtUp(head: FollowHead): void {
    if (this.#isCaughtUp) return;
    this.#isCaughtUp = true;
    this.#options.onCaughtUp?.(head);
  }

  /** A stream that has nothing to send does not say that it is caught up. */
  async #endWell(): Promise<void> {
    await this.#checkpoints.settled();
    this.#ending.signal.throwIfAborted();
    if (this.#isCaughtUp) return;
    const newest = this.#checked.last ?? (await this.#newest());
    if (newest === null) return;
    const { seq, hash, masterSeq } = newest;
    this.#tellCaughtUp({ seq, hash, masterSeq: this.#request.masterId === undefined ? null : masterSeq });
  }

  async #wait(error: LedgerTrustError): Promise<void> {
    const { clock } = this.#parts;
    const waitMs = backoffMs(this.#failures, withHint(error), () => clock.random());
    this.#options.onRetry?.({ error, waitMs });
    await clock.sleep(waitMs, this.#ending.signal);
  }
}

function unfoundedEnd(): LedgerTrustError {
  return new LedgerTrustError(
    'invalid_answer',
    'The service says that nothing more follows, and shows no event that closed what is followed.',
  );
}

/** The hint in the details is exact; the one of the header counts whole seconds. */
function withHint(error: LedgerTrustError): Pick<LedgerTrustError, 'retryAfterMs'> {
  const hint = error.details.retry_after_ms;
  return boundedHint(typeof hint === 'number' ? hint : error.retryAfterMs);
}
