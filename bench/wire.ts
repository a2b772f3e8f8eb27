import { create, toBinary } from '@bufbuild/protobuf';
import { AppendEventRequestSchema, AppendEventsRequestSchema } from '../src/gen/svc/v1/masters_pb.ts';
import { grpcHeaders, grpcMessage } from './http2-frames.ts';
import type { Transport } from './options.ts';
import { benchEventType } from './payload.ts';

/** A signed event, ready to be put on the wire. */
export interface SignedEvent {
  readonly masterId: string;
  /** JSON text. */
  readonly payload: string;
  readonly apiKey: string;
  readonly kid: string;
  /** base64 */
  readonly signature: string;
  readonly idempotencyKey: string;
  /** The event's place among those of its signer. */
  readonly place: number;
}

/** Client indexes of a stream start here, so that they take three bytes each up to two million. */
export const firstClientIndex = 16_384;
/** The host that requests name; no port, so that requests can be made before the server runs. */
const host = 'localhost';

/** The request of an event on the wire: a REST request, or frames of a gRPC call or stream. */
export function requestOf(transport: Transport, event: SignedEvent): Buffer {
  switch (transport) {
    case 'rest':
      return restRequest(event);
    case 'grpc':
      return grpcRequest(event);
    case 'stream':
      return streamRequest(event);
  }
}

function restRequest(event: SignedEvent): Buffer {
  const body = `{"event_type":"${benchEventType}","payload":${event.payload}}`;
  return Buffer.from(
    `POST /v1/traceledger/master/${event.masterId}/events HTTP/1.1\r\nhost: ${host}\r\n` +
      `authorization: Bearer ${event.apiKey}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nidempotency-key: ${event.idempotencyKey}\r\n` +
      `x-signing-key-id: ${event.kid}\r\nx-actor-sig: ${event.signature}\r\n\r\n${body}`,
  );
}

function grpcRequest(event: SignedEvent): Buffer {
  const headers = grpcHeaders('/svc.v1.MasterService/AppendEvent', host, [
    ['authorization', `Bearer ${event.apiKey}`],
    ['idempotency-key', event.idempotencyKey],
    ['x-signing-key-id', event.kid],
    ['x-actor-sig', event.signature],
  ]);
  const message = create(AppendEventRequestSchema, {
    uuid: event.masterId,
    eventType: benchEventType,
    payload: event.payload,
  });
  return Buffer.concat([headers, grpcMessage(toBinary(AppendEventRequestSchema, message), true)]);
}

function streamRequest(event: SignedEvent): Buffer {
  const message = create(AppendEventsRequestSchema, {
    clientIndex: BigInt(firstClientIndex + event.place),
    uuid: event.masterId,
    eventType: benchEventType,
    payload: event.payload,
    signingKeyId: event.kid,
    actorSig: event.signature,
    idempotencyKey: event.idempotencyKey,
  });
  return grpcMessage(toBinary(AppendEventsRequestSchema, message), false);
}

/** HEADERS that open a stream of appends. */
export function streamHeaders(apiKey: string): Buffer {
  return grpcHeaders('/svc.v1.MasterService/AppendEvents', host, [['authorization', `Bearer ${apiKey}`]]);
}
