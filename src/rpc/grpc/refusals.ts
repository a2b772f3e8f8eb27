import {
  status as grpcStatus,
  type Metadata,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ErrorCode } from '../../domain/errors.ts';
import type { RefusedStatusObject } from './call-stream.ts';

/**
 * What grpc-js refuses before a handler has the call, or takes the call away for, so that it gets ErrorInfo and a line
 * in the log as all other answers do. grpc-js has no place for that: it sends such a status by the method `sendStatus`
 * of the call that it hands to interceptors, so this one stands in its way there; and what it does not even make a call
 * of is led elsewhere (call-streams.ts).
 */

export type Status = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

export interface RefusedStatus {
  /** Of gRPC. */
  readonly status: number;
  readonly code: ErrorCode;
  /** '': the service has its own for the code. */
  readonly message: string;
  /** The setting that the bound comes from; '' where it is none. */
  readonly bound: string;
  /** The path of the method. */
  readonly route: string;
  readonly ms: number;
}

export interface RefusalParts {
  /** Sees to it that a call of grpc-js is answered so; `send` sends the status. */
  refuse(call: ServerInterceptingCallInterface, refused: RefusedStatus, send: (status: Status) => void): void;
  /** Notes a call that was answered without the service. */
  note(call: ServerInterceptingCallInterface, route: string, code: ErrorCode | null, ms: number): void;
}

/** Methods that grpc-js and its kin serve by themselves: health and reflection. */
export function isStandard(path: string): boolean {
  return path.startsWith('/grpc.');
}

/** How grpc-js ends a call whose caller takes no more bytes. Nothing of it is sent, nor is it a fault. */
const callerGone = 'Internal server error';
const DETAILS = 'grpc-status-details-bin';

/** Hands to `parts` every status that is not the service's own. */
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
      // Bytes that go on coming are refused again and again.
      if (!isFirst) return;
      const refused = { status: status.code, ...saidOf(status), route: path, ms };
      parts.refuse(call, refused, (answer) => sendStatus.call(call, answer));
    };
    // Nothing of it is changed but that, so it can stand for itself: a wrapper would cost something for each message.
    return call as ServerInterceptingCall;
  };
}

function hasDetails({ metadata }: Status): boolean {
  return metadata !== null && metadata !== undefined && metadata.get(DETAILS).length > 0;
}

type Said = Pick<RefusedStatus, 'code' | 'message' | 'bound'>;

/** grpc-js has no other word for what was wrong than its sentence, which may repeat what was sent. */
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

/**
 * The headers of a call that no handler has, since no other than this listens to it from here on. undefined where it
 * has ended.
 */
export function headersOf(call: ServerInterceptingCallInterface): Metadata | undefined {
  let headers: Metadata | undefined;
  call.start({
    onReceiveMetadata(metadata) {
      headers = metadata;
    },
    onReceiveMessage() {},
    onReceiveHalfClose() {},
    onCancel() {},
  });
  return headers;
}
