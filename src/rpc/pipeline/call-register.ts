import { setTimeout as delay } from 'node:timers/promises';
import { LedgerError } from '../../domain/errors.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { BidiCall, IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';

/** How often `drained` looks whether calls still run. */
const drainLookMs = 10;

/**
 * The calls that run. One sweep over all of them, every few milliseconds, ends the signals of calls past their
 * deadline; one timer per call would cost more than most of the pipeline. If a handler does not answer in the grace
 * period after that either, the register answers in its place: `outcome_unknown`, or `unavailable` if the call cannot
 * have written anything.
 */
export function createCallRegister(
  now: () => number,
  answerFor: (call: RunningCall, incoming: IncomingCall, error: LedgerError) => void,
) {
  const calls = new Slab<IncomingCall>();
  /** Streams without a deadline, of which a node may have thousands. They are not swept. */
  const lasting = new Slab<IncomingCall>();
  const slabOf = ({ deadline }: RunningCall): Slab<IncomingCall> =>
    deadline === Number.POSITIVE_INFINITY ? lasting : calls;

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
    get size(): number {
      return calls.size + lasting.size;
    },
    add(call: RunningCall, incoming: IncomingCall): void {
      incoming.call = call;
      call.slot = slabOf(call).add(incoming);
    },
    remove(incoming: IncomingCall): void {
      const { call } = incoming;
      if (call === null) return;
      // A connection keeps its call objects longer than the calls run.
      incoming.call = null;
      slabOf(call).remove(call.slot);
    },
    /** Resolves when no call runs any more, or after `timeoutMs`. */
    async drained(timeoutMs: number): Promise<void> {
      const endMs = performance.now() + timeoutMs;
      while (this.size > 0 && performance.now() < endMs) await delay(drainLookMs);
    },
    /** Ends the signal of a call whose caller has gone. */
    hangUp({ call }: Pick<IncomingCall, 'call'>): void {
      // grpc-js and node:http report the end of answered calls in the same way.
      if (call?.answered === false) call.abort('caller gone');
    },
    /** Takes no more requests from all streams. Each ends with the error once the requests it took are answered. */
    endStreams(error: LedgerError): void {
      for (const incoming of [...calls, ...lasting])
        if ('requests' in incoming) this.endStream(incoming as BidiCall, error);
    },
    endStream({ call, requests }: BidiCall, error: LedgerError): void {
      if (call === null) return;
      call.ending = error;
      requests.stop();
    },
    [Symbol.dispose](): void {
      clearInterval(timer);
    },
  };
}

function lateError(call: RunningCall): LedgerError {
  if (!call.endpoint.changesState) return new LedgerError('unavailable', 'The service did not answer in time: retry.');
  const message =
    'The service did not answer in time, and the call may or may not have been done: retry with the same Idempotency-Key.';
  return new LedgerError('outcome_unknown', message);
}
