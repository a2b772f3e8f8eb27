import type { DescField } from '@bufbuild/protobuf';
import type { Endpoint } from './endpoint.ts';
import type { AnswerFacts } from './methods.ts';

/** A request as it is sent, which is what ENTITY_REQUEST signs. */
export interface Wire {
  readonly endpoint: Endpoint;
  /** Over gRPC always `POST`. */
  readonly httpMethod: string;
  /** The path with its query; over gRPC `/svc.v1.Service/Method`. */
  readonly path: string;
  /** JSON text, or the serialized message. Empty if there is none. */
  readonly body: Uint8Array;
}

/** By lower-case name. gRPC sends them as metadata. */
export type Headers = Readonly<Record<string, string>>;

export interface Received extends Omit<AnswerFacts, 'attempts'> {
  /** The answer in the shape of Answer<M>. An empty object if the answer has no fields. */
  readonly answer: Readonly<Record<string, unknown>>;
}

/** A message of a live stream: the field of the answer's oneof that is set, and its value in the shape of Answer<M>. */
export interface LiveMessage {
  /** The field's name, for example `caughtUp`. */
  readonly kind: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A transport to the service. It sends a request once; the caller retries. Errors are LedgerTrustError. */
export interface Transport {
  /** Throws TypeError if a path field is missing, or if the transport does not have the method. */
  encode(endpoint: Endpoint, given: ReadonlyMap<DescField, unknown>): Wire;
  /** Rejects with the signal's reason if the signal aborts. */
  send(wire: Wire, headers: Headers, signal: AbortSignal): Promise<Received>;
  /** Calls a method that answers with a stream. Throws like `send`. */
  stream(wire: Wire, headers: Headers, signal: AbortSignal): AsyncIterable<Readonly<Record<string, unknown>>>;
  /**
   * Calls a method whose answer is a live stream. Ends well without a message if the service has nothing more to send.
   * Passes over messages of kinds that this client does not know. Throws like `send`.
   */
  live(wire: Wire, headers: Headers, signal: AbortSignal): AsyncIterable<LiveMessage>;
  close(): Promise<void>;
}
