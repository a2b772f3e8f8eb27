import { type DescMessage, isMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { AppendEventRequestSchema } from '../../gen/svc/v1/masters_pb.ts';

/**
 * A hash, hex, of what a call with an idempotency key asks for: REST method, path with query, and body as its message.
 * So it is the same for all transports, and for all forms of the same JSON. `rest` is the REST request that the call is
 * or would be; `query` is its query with the question mark, or ''.
 */
export function fingerprintOf(
  input: DescMessage,
  message: Message,
  rest: () => { readonly verb: string; readonly path: string },
  query: string,
): string {
  if (isMessage(message, AppendEventRequestSchema))
    return appendFingerprint(message.uuid, message.eventType, message.payload, query);
  const { verb, path } = rest();
  return hashOf(verb, path + query, toBinary(input, message, { writeUnknownFields: false }));
}

/** The same for an append, also by stream, so that a retry may use another transport. `payload`: canonical JSON. */
export function appendFingerprint(masterId: string, eventType: string, payload: string, query = ''): string {
  const path = `/v1/traceledger/master/${masterId}/events${query}`;
  return hashOf('POST', path, `{"event_type":${JSON.stringify(eventType)},"payload":${payload}}`);
}

function hashOf(verb: string, pathWithQuery: string, body: string | Uint8Array): string {
  const head = `${verb} ${pathWithQuery}\n`;
  return sha256Hex(typeof body === 'string' ? head + body : Buffer.concat([Buffer.from(head, 'utf8'), body]));
}
