import type { ErrorCode, LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { Metrics } from '../../runtime/telemetry/metrics.ts';
import type { AccessHistory } from '../../service/audit/access-history.ts';
import type { AccessRecord } from '../../service/audit/access-record.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall, Transport } from '../call/running-call.ts';
import { statusOf } from '../call/status.ts';
import { isProven, isUnread, recordsOf } from './call-accesses.ts';

export interface UnroutedRequest {
  /** `page` is the documentation and other pages. `http` is anything else that belongs to no transport of the API. */
  readonly transport: Transport | 'page' | 'http';
  /** The HTTP method; '' if the request cannot be read. */
  readonly verb: string;
  /** An existing route, or `none`. Never text from the caller. */
  readonly route: string;
  /** The HTTP status. */
  readonly status: number;
  readonly code: ErrorCode | null;
  readonly requestId: string;
  /** 0 for a request that is refused as soon as it arrives. */
  readonly ms: number;
  readonly cause?: unknown;
}

interface AnswerLogParts {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'requests' | 'requestSeconds' | 'streamEventErrors'>;
  readonly history: AccessHistory | null;
  monotonicMs(): number;
  now(): number;
}

/**
 * Records every answer: its metrics, its log line, its access records. A returned promise resolves when the access
 * history has room again.
 */
export type AnswerLog = ReturnType<typeof createAnswerLog>;

export function createAnswerLog(parts: AnswerLogParts) {
  const { log, metrics } = parts;
  const logsCalls = log.isLevelEnabled('info');

  const lineOf = (call: RunningCall, code: ErrorCode | 'ok', status: number) => ({
    transport: call.transport,
    method: call.endpoint.route?.httpMethod ?? 'POST',
    route: call.endpoint.route?.template ?? call.endpoint.rpcPath,
    status,
    code,
    ms: roundedMs(parts.monotonicMs() - call.startedMs),
    request_id: call.requestId,
    actor: call.caller?.actorId,
  });

  const note = (call: RunningCall, code: ErrorCode | 'ok', status: number, error: LedgerError | null): void => {
    const ms = parts.monotonicMs() - call.startedMs;
    const method = call.endpoint.rpcPath;
    metrics.requests.inc({ transport: call.transport, method, code });
    metrics.requestSeconds.observe({ transport: call.transport, method }, ms / 1000);
    const broken = error !== null && isBroken(error);
    if (!logsCalls && !broken) return;
    const line = lineOf(call, code, status);
    if (broken) log.error({ ...line, err: error.cause ?? error }, 'call failed');
    else log.info(line, 'call');
  };

  /**
   * Puts the access records of a call into the history. If a slow handler was answered for, its own answer is not
   * recorded.
   */
  const keep = (call: RunningCall, incoming: IncomingCall, status: number, error: LedgerError | null) => {
    const { caller } = call;
    const { history } = parts;
    if (
      history === null ||
      caller === null ||
      !call.isRecorded ||
      call.hasRecorded ||
      (error === null && call.answered)
    )
      return undefined;
    if (error !== null && !isProven(call, caller, status)) return undefined;
    const outcome = { status, isRefused: error !== null, at: parts.now() };
    if (error !== null && isUnread(call)) {
      // The request is read once the answer is on its way.
      return history(
        Promise.resolve().then(() => {
          call.request = incoming.readable(error);
          return recordsOf(call, caller, incoming, outcome);
        }),
        caller.actorId,
      );
    }
    const records = recordsOf(call, caller, incoming, outcome);
    if (records instanceof Promise) return history(records, caller.actorId);
    if (records.length > 1) return keepOneByOne(history, records);
    const [only] = records;
    return only && history(only, caller.actorId);
  };

  return {
    /** Leaves an access record of a live stream. */
    recordStream(call: RunningCall, incoming: IncomingCall): void {
      const { caller } = call;
      const { history } = parts;
      if (history === null || caller === null || !call.isRecorded) return;
      const records = recordsOf(call, caller, incoming, { status: 200, isRefused: false, at: parts.now() });
      void history(Promise.resolve(records), caller.actorId);
    },
    /** See Call. */
    recordNamed(call: RunningCall, incoming: IncomingCall): Promise<void> | undefined {
      return (call.ledgers?.size ?? 0) < limits.streamLedgersMax ? undefined : keep(call, incoming, 200, null);
    },
    succeeded(call: RunningCall, incoming: IncomingCall): Promise<void> | undefined {
      const { route, rule } = call.endpoint;
      // A live stream has left its record with its first message.
      const status = route?.emptyAnswer === true || (rule.live && !call.hasRecorded) ? 204 : 200;
      note(call, 'ok', status, null);
      return keep(call, incoming, status, null);
    },
    failed(call: RunningCall, incoming: IncomingCall, error: LedgerError): Promise<void> | undefined {
      const status = statusOf(error.code).http;
      note(call, error.code, status, error);
      return keep(call, incoming, status, error);
    },
    /** See `Call`. */
    eventFailed(call: RunningCall, clientIndex: bigint, error: LedgerError, isFirst: boolean, ms: number): void {
      const { code } = error;
      metrics.streamEventErrors.inc({ code });
      const broken = isFirst && isBroken(error);
      if (!broken && code !== 'outcome_unknown') return;
      const common = lineOf(call, code, statusOf(code).http);
      const line = { ...common, ms: roundedMs(ms), client_index: String(clientIndex) };
      if (broken) log.error({ ...line, err: error.cause ?? error }, 'event failed');
      else log.info(line, 'event failed');
    },
    /** An error after the answer was given. */
    late(call: RunningCall, { code, cause }: LedgerError): void {
      log.warn({ ...lineOf(call, code, statusOf(code).http), err: cause }, 'error after the answer');
    },
    unrouted({ transport, verb, route, status, code: error, requestId, ms, cause }: UnroutedRequest): void {
      const code = error ?? 'ok';
      metrics.requests.inc({ transport, method: route, code });
      const broken = status >= 500 && cause !== undefined;
      if (!logsCalls && !broken) return;
      const line = { transport, method: verb, route, status, code, ms: roundedMs(ms), request_id: requestId };
      if (broken) log.error({ ...line, err: cause }, 'no call');
      else log.info(line, 'no call');
    },
  };
}

/** Whether the service failed, so that the log needs the cause. */
function isBroken({ code, cause }: LedgerError): boolean {
  return statusOf(code).http >= 500 && (code === 'internal' || cause !== undefined);
}

/** A call with many records waits for room between them, so that it does not fill the queue. */
async function keepOneByOne(history: AccessHistory, records: readonly AccessRecord[]): Promise<void> {
  for (const record of records) {
    const full = history(record, record.actorId);
    if (full !== undefined) await full;
  }
}

function roundedMs(ms: number): number {
  return Math.round(ms * 100) / 100;
}
