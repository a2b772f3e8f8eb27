import { isMessage, toBinary } from '@bufbuild/protobuf';
import { type AppendEventRequest, AppendEventRequestSchema } from '../../gen/svc/v1/masters_pb.ts';
import { appendFingerprint, callFingerprint } from '../../service/writing/command-key.ts';
import type { Decoded, IncomingCall } from '../call/incoming-call.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';

/**
 * A hash of what a call with an idempotency key asks for: REST method, path with query, and body. It is the same for
 * all transports. The body counts as its message, in which fields of JSON text are canonical, so white space, the order
 * of members and the wire format make no difference.
 */
export function fingerprintOf(endpoint: Endpoint, decoded: Decoded, exchange: IncomingCall): string {
  if (isAppendEvent(decoded)) {
    const { uuid, eventType, payload } = decoded.message;
    return appendFingerprint(uuid, eventType, payload, exchange.query);
  }
  const body = toBinary(endpoint.method.input, decoded.message, { writeUnknownFields: false });
  const { verb, path } = exchange.equivalent(decoded.message);
  return callFingerprint(verb, path + exchange.query, body);
}

function isAppendEvent(decoded: Decoded): decoded is Decoded & { readonly message: AppendEventRequest } {
  return isMessage(decoded.message, AppendEventRequestSchema);
}
