import type { Message } from '@bufbuild/protobuf';
import type { ErrorCode, LedgerError } from '../domain/errors.ts';
import type { Log } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { AccessHistory } from '../service/access-history.ts';
import type { Caller } from '../service/call.ts';
import type { Door } from './door.ts';
import type { Exchange } from './exchange.ts';
import { namedUnread } from './named-unread.ts';
import type { RunningCall } from './running-call.ts';
import { statusOf } from './status.ts';

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

  /** `error`: null on success. An answer given in place of a handler that was too slow is the one that counts. */
  const keep = (
    call: RunningCall,
    exchange: Exchange,
    message: Message | null,
    status: number,
    error: LedgerError | null,
  ) => {
    const { caller } = call;
    if (parts.history === null || caller === null || !call.isRecorded || (error === null && call.answered))
      return undefined;
    if (error !== null && !isProven(call, caller, status, error)) return undefined;
    const ledgers = call.ledgers ?? unread(call, caller, exchange, error);
    if (ledgers === null) return undefined;
    const { verb: method, path } = exchange.equivalent(message);
    const { actorId, apiKeyId } = caller;
    const { requestId } = call;
    const at = parts.now();
    let waits: Promise<void> | undefined;
    for (const ledgerId of ledgers.size === 0 ? noLedger : ledgers) {
      // The history is one queue: room for the last record is room for those before it.
      waits = parts.history({ actorId, apiKeyId, ledgerId, method, path, responseStatus: status, at, requestId });
    }
    return waits;
  };

  return {
    succeeded(call, exchange, message) {
      const status = call.endpoint.route?.emptyAnswer === true ? 204 : 200;
      note(call, 'ok', status, null);
      return keep(call, exchange, message, status, null);
    },
    failed(call, exchange, message, error) {
      const status = statusOf(error.code).http;
      note(call, error.code, status, error);
      return keep(call, exchange, message, status, error);
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

/** A master or organization under no ledger. */
const noLedger = [null] as const;

/** What a signed call is refused with once its signature was verified. */
const pastSignature: ReadonlySet<number> = new Set([403, 409, 422, 500, 503, 504]);

/**
 * Whether it was the caller who was refused. An identity header says who is meant: of an entity that must sign, a call that was
 * refused before its signature was verified may come from anybody, and leaves nothing in the entity's history.
 */
function isProven(call: RunningCall, caller: Caller, status: number, error: LedgerError): boolean {
  if (!caller.mustSign) return true;
  if (status === 401 || call.ledgers === null) return false;
  return !call.endpoint.rule.signed || (pastSignature.has(status) && error.code !== 'access_expired');
}

/** What a call names that was refused before its request was read, or was answered from memory. */
function unread(call: RunningCall, caller: Caller, exchange: Exchange, error: LedgerError | null) {
  const isUnread = error !== null || call.replayed;
  return isUnread && !caller.mustSign ? namedUnread(call.endpoint, exchange.equivalent(null)) : null;
}
