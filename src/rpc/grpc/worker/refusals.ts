import {
  status as grpcStatus,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ErrorCode } from '../../../domain/errors.ts';
import type { RefusedStatusObject } from './call-stream.ts';

/**
 * Handles calls that grpc-js refuses before a handler has them, or takes away from their handler. They get ErrorInfo
 * and a log line like all other answers. grpc-js has no hook for that. It sends the status by the method `sendStatus`
 * of the call that interceptors get, so the interceptor replaces that method. Requests for which grpc-js makes no call
 * are redirected in call-streams.ts.
 */

export type Status = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

interface RefusedStatus {
  /** The gRPC status. */
  readonly status: number;
  readonly code: ErrorCode;
  /** '' if the service has its own message for the code. */
  readonly message: string;
  /** The setting that sets the bound; '' if there is none. */
  readonly bound: string;
  /** The path of the method. */
  readonly route: string;
  readonly ms: number;
}

export interface RefusalParts {
  /** Has a call of grpc-js answered with an error of the service. `send` sends the final status. */
  refuse(call: ServerInterceptingCallInterface, refused: RefusedStatus, send: (status: Status) => void): void;
  /** Records a call that was answered without the service. */
  note(call: ServerInterceptingCallInterface, route: string, code: ErrorCode | null, ms: number): void;
}

/** Whether grpc-js or one of its packages serves the method: health and reflection. */
export function isStandard(path: string): boolean {
  return path.startsWith('/grpc.');
}

/**
 * The text with which grpc-js ends a call whose caller takes no more bytes. Nothing of it is sent, and it is no fault.
 */
const callerGone = 'Internal server error';
const DETAILS = 'grpc-status-details-bin';

/** Passes every status that is not the service's own to `parts`. */
export function refusalInterceptor(parts: RefusalParts): ServerInterceptor {
  return ({ path }, call) => {
    const startedMs = performance.now();
    const { sendStatus } = call;
    let isAnswered = false;
    call.sendStatus = (status) => {
      if (status.details === callerGone && !hasDetails(status)) return sendStatus.call(call, status);
      const isOk = status.code === grpcStatus.OK;
      const isFirst = !isAnswered;
      isAnswered = true;
      if (isOk ? !isStandard(path) : hasDetails(status)) return sendStatus.call(call, status);
      const ms = performance.now() - startedMs;
      if (isOk || status.code === grpcStatus.DEADLINE_EXCEEDED) {
        if (isFirst) parts.note(call, path, isOk ? null : 'outcome_unknown', ms);
        return sendStatus.call(call, status);
      }
      // grpc-js refuses again for each further chunk of bytes. Only the first refusal counts.
      if (!isFirst) return;
      const refused = { status: status.code, ...saidOf(status), route: path, ms };
      parts.refuse(call, refused, (answer) => sendStatus.call(call, answer));
    };
    // Only `sendStatus` changes, so the call itself is returned: a wrapper would cost something for each message.
    return call as ServerInterceptingCall;
  };
}

function hasDetails({ metadata }: Status): boolean {
  return metadata !== null && metadata !== undefined && metadata.get(DETAILS).length > 0;
}

type Said = Pick<RefusedStatus, 'code' | 'message' | 'bound'>;

/** grpc-js reports what was wrong only as a sentence, which may repeat text that the caller sent. */
const sentences: readonly [RegExp, ErrorCode, string?][] = [
  [/^Received message (larger than|that decompresses to)/, 'payload_too_large', ''],
  [
    /^Received message compressed with unsupported encoding/,
    'unsupported_media_type',
    'The header grpc-encoding must be gzip, deflate or identity.',
  ],
  [
    /^Invalid grpc-timeout/,
    'invalid_argument',
    'The header grpc-timeout must be 1 to 8 digits and a unit, which is one of H, M, S, m, u and n.',
  ],
  [/^(Failed to decompress|Received (a second|no) request message)/, 'invalid_argument'],
];

function saidOf(status: Status | RefusedStatusObject): Said {
  const { code, details } = status;
  if ('reason' in status) return { code: status.reason, message: details, bound: status.bound };
  const known = sentences.find(([sentence]) => sentence.test(details));
  if (known !== undefined) return { code: known[1], message: known[2] ?? details, bound: '' };
  const reason = code === grpcStatus.NOT_FOUND ? 'not_found' : 'internal';
  return { code: reason, message: details.slice(0, shownMaxChars), bound: '' };
}

const shownMaxChars = 256;
