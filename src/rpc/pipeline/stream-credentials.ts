import { asLedgerError, LedgerError } from '../../domain/errors.ts';
import type { MethodRule } from '../../gen/svc/v1/options_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller } from '../../service/calls/call.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { BidiCall, IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import { identify } from './caller.ts';

type AnswerFor = (call: RunningCall, incoming: IncomingCall, error: LedgerError) => void;

interface Holder {
  /** With the timer of a stream that waits for its last outcomes. */
  readonly streams: Map<IncomingCall, NodeJS.Timeout | null>;
  /** When a check that found the credential valid began, or its first stream did (monotonic, ms). */
  validMs: number;
  /** When the check under way began (monotonic, ms). */
  beganMs: number;
}

/** The caller of a stream was found at its start. */
const known = { admitUnknown: () => {} };

/**
 * The credentials of streams without a deadline. Each is checked at intervals, once for all streams that came with it.
 * When one is no longer valid, its streams end with the error. An API key that is revoked on this node ends its streams
 * at once.
 *
 * A live stream sends nothing more. A stream of requests takes no more of them, and ends once the outcomes of the taken
 * ones are sent. If they do not arrive within `streamLastOutcomesMs`, it ends with `outcome_unknown`, by `answerFor`: a
 * refusal would say that none of them was written. The caller's next stream gets the refusal.
 */
export class StreamCredentials {
  readonly #credentials: Credentials;
  readonly #answerFor: AnswerFor;
  /** By API key, or by the actor of identity headers. */
  readonly #holders = new Map<string, Holder>();
  #timer: NodeJS.Timeout | null = null;

  constructor(credentials: Credentials, answerFor: AnswerFor) {
    this.#credentials = credentials;
    this.#answerFor = answerFor;
    credentials.onRevoked((apiKeyId, error) => {
      const holder = this.#holders.get(apiKeyId);
      if (holder !== undefined) this.#endAll(holder, error);
    });
  }

  /** Checks the credential of a stream that runs, until `unwatch`. */
  watch(stream: IncomingCall): void {
    const key = holderOf(stream);
    if (key === null) return;
    const holder = this.#holders.get(key) ?? {
      streams: new Map(),
      validMs: performance.now(),
      beganMs: Number.NEGATIVE_INFINITY,
    };
    holder.streams.set(stream, null);
    this.#holders.set(key, holder);
    this.#timer ??= setInterval(() => this.#checkAll(), limits.streamCredentialCheckMs).unref();
  }

  unwatch(stream: IncomingCall): void {
    const key = holderOf(stream);
    if (key === null) return;
    const holder = this.#holders.get(key);
    clearTimeout(holder?.streams.get(stream) ?? undefined);
    holder?.streams.delete(stream);
    if (holder?.streams.size === 0) this.#holders.delete(key);
    if (this.#holders.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #checkAll(): void {
    for (const holder of this.#holders.values()) void this.#check(holder);
  }

  /** All streams of a holder have the same credential. It is read from one that still runs. */
  async #check(holder: Holder): Promise<void> {
    const [stream] = holder.streams.keys();
    if (!stream?.call) return;
    const error = await this.#refusal(holder, stream.call.endpoint.rule, stream);
    if (error !== null) this.#endAll(holder, error);
  }

  /**
   * Returns the error that ends the holder's streams, or null. While the store does not answer they go on, but not for
   * longer than `streamCredentialUnknownMs`: the credential may have been revoked meanwhile. One check runs at a time,
   * and one that hangs is given up for the next one.
   */
  async #refusal(holder: Holder, rule: MethodRule, stream: IncomingCall): Promise<LedgerError | null> {
    const nowMs = performance.now();
    if (nowMs - holder.validMs > limits.streamCredentialUnknownMs)
      return new LedgerError(
        'unavailable',
        'The credential of this stream could not be checked for too long: begin the stream again.',
      );
    if (nowMs - holder.beganMs < limits.streamCredentialCheckMaxMs) return null;
    holder.beganMs = nowMs;
    try {
      await identify(this.#credentials, rule, stream, known);
      holder.validMs = Math.max(holder.validMs, nowMs);
      return null;
    } catch (thrown) {
      const error = asLedgerError(thrown);
      return error.code === 'unavailable' ? null : error;
    } finally {
      if (holder.beganMs === nowMs) holder.beganMs = Number.NEGATIVE_INFINITY;
    }
  }

  #endAll({ streams }: Holder, error: LedgerError): void {
    for (const stream of streams.keys()) {
      const { call } = stream;
      if (call === null || call.ending !== null) continue;
      if ('requests' in stream) streams.set(stream, this.#endRequests(call, stream as BidiCall, error));
      else call.endWith(error);
    }
  }

  /** Returns the timer after which the last outcomes are missing. */
  #endRequests(call: RunningCall, stream: BidiCall, error: LedgerError): NodeJS.Timeout {
    call.ending = error;
    stream.requests.stop();
    return setTimeout(() => {
      call.abort('credential ended');
      if (call.answered) return;
      call.answered = true;
      call.ending = new LedgerError(
        'outcome_unknown',
        'The credential of this stream has ended, and events that were taken may or may not have been written: send them again with their idempotency keys and a credential that is good.',
      );
      this.#answerFor(call, stream, call.ending);
    }, limits.streamLastOutcomesMs).unref();
  }
}

function holderOf({ call }: IncomingCall): string | null {
  const caller: Caller | null = call?.caller ?? null;
  return caller === null ? null : (caller.apiKeyId ?? caller.actorId);
}
