import { LedgerError } from '../../domain/errors.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { BidiCall, IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';

/**
 * The calls that run. One sweep over all of them, every few milliseconds, ends the signals of calls past their
 * deadline; one timer per call would cost more than most of the pipeline. If a handler does not answer in the grace
 * period after that either, the register answers in its place: `outcome_unknown`, or `unavailable` if the call cannot
 * have written anything.
 */
export interface CallRegister {
  add(call: RunningCall, incoming: IncomingCall): void;
  remove(incoming: IncomingCall): void;
  readonly size: number;
  /** Resolves with true when no call runs any more, or with false if some still run after `timeoutMs`. */
  drained(timeoutMs: number): Promise<boolean>;
  /** Ends the signal of a call whose caller has gone. */
  hangUp(incoming: IncomingCall): void;
  /**
   * Takes no more requests from all streams. Each stream ends with this error once the requests that were taken are
   * answered.
   */
  endStreams(error: LedgerError): void;
  /** The same for one stream. */
  endStream(incoming: BidiCall, error: LedgerError): void;
  [Symbol.dispose](): void;
}

export function createCallRegister(
  now: () => number,
  answerFor: (call: RunningCall, incoming: IncomingCall, error: LedgerError) => void,
): CallRegister {
  const calls = new Slab<IncomingCall>();
  const waiting = new Set<() => void>();

  const sweep = (): void => {
    if (calls.size === 0) return;
    const time = now();
    for (const incoming of calls) {
      const { call } = incoming;
      if (call === null || call.deadline > time) continue;
      call.abort('deadline passed');
      if (call.answered || call.deadline + limits.deadlineGraceMs > time) continue;
      call.answered = true;
      answerFor(call, incoming, lateError(call));
    }
  };
  const timer = setInterval(sweep, limits.deadlineSweepMs).unref();

  return {
    get size() {
      return calls.size;
    },
    add(call, incoming) {
      incoming.call = call;
      call.slot = calls.add(incoming);
    },
    remove(incoming) {
      const { call } = incoming;
      if (call === null) return;
      // A connection keeps its call objects longer than the calls run.
      incoming.call = null;
      calls.remove(call.slot);
      if (calls.size === 0) for (const wake of waiting) wake();
    },
    drained(timeoutMs) {
      if (calls.size === 0) return Promise.resolve(true);
      return new Promise((resolve) => {
        const done = (empty: boolean): void => {
          clearTimeout(late);
          waiting.delete(wake);
          resolve(empty);
        };
        const wake = (): void => done(true);
        const late = setTimeout(() => done(false), timeoutMs);
        waiting.add(wake);
      });
    },
    hangUp(incoming) {
      // grpc-js and node:http report the end of answered calls in the same way.
      if (incoming.call?.answered === false) incoming.call.abort('caller gone');
    },
    endStreams(error) {
      for (const incoming of calls) if (isStream(incoming)) endStream(incoming, error);
    },
    endStream,
    [Symbol.dispose]() {
      clearInterval(timer);
    },
  };
}

function endStream(incoming: BidiCall, error: LedgerError): void {
  if (incoming.call === null) return;
  incoming.call.ending = error;
  incoming.requests.stop();
}

function isStream(incoming: IncomingCall): incoming is BidiCall {
  return 'requests' in incoming;
}

function lateError(call: RunningCall): LedgerError {
  if (!call.endpoint.changesState) return new LedgerError('unavailable', 'The service did not answer in time: retry.');
  const message =
    'The service did not answer in time, and the call may or may not have been done: retry with the same Idempotency-Key.';
  return new LedgerError('outcome_unknown', message);
}
