import type { DescField } from '@bufbuild/protobuf';
import type { Endpoint } from './endpoint.ts';

/** A request as it goes over the wire, which is what ENTITY_REQUEST signs (decisions.md, section 4). */
export interface Wire {
  readonly endpoint: Endpoint;
  /** Over gRPC always `POST`. */
  readonly httpMethod: string;
  /** With its query; over gRPC `/svc.v1.Service/Method`. */
  readonly path: string;
  /** JSON text, or the serialized message; empty if there is none. */
  readonly body: Uint8Array;
}

/** Request headers by lower-case name; over gRPC they are metadata. */
export type Headers = Readonly<Record<string, string>>;

export interface Received {
  /** What Answer<M> says; an empty object where the answer has no fields. */
  readonly answer: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  /** The first answer again, to the same idempotency key. */
  readonly replayed: boolean;
}

/** One way to reach the service. It sends once; retrying is not its business. Errors are LedgerTrustError. */
export interface Transport {
  encode(endpoint: Endpoint, given: ReadonlyMap<DescField, unknown>): Wire;
  /** Rejects with the signal's reason when it aborts. */
  send(wire: Wire, headers: Headers, signal: AbortSignal): Promise<Received>;
  /** A method that answers with a stream. */
  stream(wire: Wire, headers: Headers, signal: AbortSignal): AsyncIterable<Readonly<Record<string, unknown>>>;
  /** Lets go of all connections. */
  close(): Promise<void>;
}
