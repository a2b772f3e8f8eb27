import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http2';
import {
  status as grpcStatus,
  type Metadata,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import type { ErrorCode } from '../../domain/errors.ts';

/**
 * What grpc-js refuses before a handler has the call, or takes the call away for, so that it gets ErrorInfo and a line in the log as all other
 * answers do. grpc-js has no place for that: it sends such a status by the method `sendStatus` of the call that it hands to interceptors, so this
 * one stands in its way there; and what it does not even make a call of is led elsewhere by the headers of its HTTP/2 stream. Nothing
 * of this is done for each message.
 */

export type Status = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

export interface RefusedStatus {
  /** Of gRPC. */
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
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
      const refused = { status: status.code, code: codeOf(status), message: status.details, route: path, ms };
      parts.refuse(call, refused, (answer) => sendStatus.call(call, answer));
    };
    // Nothing of it is changed but that, so it can stand for itself: a wrapper would cost something for each message.
    return call as ServerInterceptingCall;
  };
}

function hasDetails({ metadata }: Status): boolean {
  return metadata !== null && metadata !== undefined && metadata.get(DETAILS).length > 0;
}

/** grpc-js has no other word for what was wrong than its sentence. */
const sentences: readonly [RegExp, ErrorCode][] = [
  [/^Received message (larger than|that decompresses to)/, 'payload_too_large'],
  [/^Received message compressed with unsupported encoding/, 'unsupported_media_type'],
  [/^(Failed to decompress|Invalid grpc-timeout|Received (a second|no) request message)/, 'invalid_argument'],
];

function codeOf({ code, details }: Status): ErrorCode {
  const known = sentences.find(([sentence]) => sentence.test(details));
  if (known !== undefined) return known[1];
  return code === grpcStatus.NOT_FOUND ? 'not_found' : 'internal';
}

/** The headers of a call that no handler has, since no other than this listens to it from here on. undefined where it has ended. */
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

/** Node's own channel. It tells of a stream before its server does, and of the very headers that the server is given. */
const streamCreated = 'http2.server.stream.created';

/**
 * Leads what is for no method to the method `unknownPath`. `onOtherMedia` is called, with the path of a method or null and the request id
 * that was sent, for what is not gRPC by its media type: grpc-js answers it with a bare 415, as the protocol has it. Once a thread.
 */
export function leadUnknownMethods(
  paths: ReadonlySet<string>,
  unknownPath: string,
  onOtherMedia: (path: string | null, requestId: string) => void,
): void {
  subscribe(streamCreated, (message) => {
    const { headers } = message as { readonly headers: IncomingHttpHeaders };
    const path = headers[':path'] ?? '';
    const isKnown = paths.has(path);
    if (headers['content-type']?.startsWith('application/grpc') !== true) {
      onOtherMedia(isKnown ? path : null, String(headers['x-request-id'] ?? ''));
    } else if (!isKnown) headers[':path'] = unknownPath;
  });
}
