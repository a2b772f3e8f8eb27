import type { Message } from '@bufbuild/protobuf';
import type { ErrorCode, LedgerError } from '../domain/errors.ts';
import type { Log } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { Door } from './door.ts';
import type { Exchange } from './exchange.ts';
import type { RunningCall } from './running-call.ts';
import { statusOf } from './status.ts';

/** One authenticated call that named a ledger (decisions.md, section 5: audit). */
export interface AccessRecord {
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null: a master or organization under no ledger. */
  readonly ledgerId: string | null;
  /** REST method and path, without the query, also for calls through other doors. */
  readonly method: string;
  readonly path: string;
  /** HTTP status. */
  readonly responseStatus: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
}

/** Keeps access records. The answer waits for it; a failure must be its own affair. */
export type AccessHistory = (record: AccessRecord) => Promise<void> | undefined;

/** What is noted of every answer: its metrics, its line in the log, its access record. */
export interface AnswerLog {
  succeeded(call: RunningCall, exchange: Exchange, message: Message | null): Promise<void> | undefined;
  failed(call: RunningCall, exchange: Exchange, message: Message | null, error: LedgerError): Promise<void> | undefined;
  /** An error after the answer was given. */
  late(call: RunningCall, error: LedgerError): void;
  /** A request that no method of the API answers; `route` never holds what the caller sent. */
  noCall(door: Door, verb: string, route: string, status: number, code: ErrorCode | null, requestId: string): void;
}

export interface AnswerLogParts {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'requests' | 'requestSeconds'>;
  readonly history: AccessHistory | null;
  monotonicMs(): number;
  now(): number;
}

export function createAnswerLog(parts: AnswerLogParts): AnswerLog {
  const { log, metrics } = parts;
  const logsCalls = log.isLevelEnabled('info');

  const note = (call: RunningCall, code: ErrorCode | 'ok', status: number, error: LedgerError | null): void => {
    const ms = parts.monotonicMs() - call.startedMs;
    const method = call.endpoint.rpcPath;
    metrics.requests.inc({ door: call.door, method, code });
    metrics.requestSeconds.observe({ door: call.door, method }, ms / 1000);
    const broken = error !== null && status >= 500 && (code === 'internal' || error.cause !== undefined);
    if (!logsCalls && !broken) return;
    const line = {
      door: call.door,
      method: call.endpoint.route?.httpMethod ?? 'POST',
      route: call.endpoint.route?.template ?? method,
      status,
      code,
      ms: Math.round(ms * 100) / 100,
      request_id: call.requestId,
      actor: call.caller?.actorId,
    };
    if (broken) log.error({ ...line, err: error.cause ?? error }, 'call failed');
    else log.info(line, 'call');
  };

  const keep = (call: RunningCall, exchange: Exchange, message: Message | null, responseStatus: number) => {
    const { caller, ledgers } = call;
    if (parts.history === null || caller === null || ledgers === null) return undefined;
    const { verb: method, path } = exchange.equivalent(message);
    const base = {
      actorId: caller.actorId,
      apiKeyId: caller.apiKeyId,
      method,
      path,
      responseStatus,
      at: parts.now(),
      requestId: call.requestId,
    };
    const records = ledgers.size === 0 ? [null] : [...ledgers];
    const kept = records.map((ledgerId) => parts.history?.({ ...base, ledgerId }));
    return kept.some((one) => one !== undefined) ? Promise.all(kept).then(() => undefined) : undefined;
  };

  return {
    succeeded(call, exchange, message) {
      const status = call.endpoint.route?.emptyAnswer === true ? 204 : 200;
      note(call, 'ok', status, null);
      return keep(call, exchange, message, status);
    },
    failed(call, exchange, message, error) {
      const status = statusOf(error.code).http;
      note(call, error.code, status, error);
      return keep(call, exchange, message, status);
    },
    late(call, error) {
      log.warn(
        { method: call.endpoint.rpcPath, code: error.code, request_id: call.requestId },
        'error after the answer',
      );
    },
    noCall(door, method, route, status, code, requestId) {
      metrics.requests.inc({ door, method: 'none', code: code ?? 'ok' });
      if (logsCalls) log.info({ door, method, route, status, code: code ?? 'ok', request_id: requestId }, 'no call');
    },
  };
}
