import type { Message } from '@bufbuild/protobuf';
import type { LedgerError } from '../../domain/errors.ts';
import type { JsonNode } from '../../domain/json/json.ts';
import type { EntityRequest } from '../../service/calls/call.ts';
import type { RunningCall, Transport } from './running-call.ts';

/** A request message. Its fields of JSON text are in canonical form. */
export interface Decoded {
  readonly message: Message;
  /** The parsed form of the fields of JSON text, by field name. The handler takes each out once. */
  readonly json: Map<string, JsonNode>;
}

/** The REST request that a call is or would be. Fingerprints of idempotency keys and the access history use it. */
export interface RestEquivalent {
  readonly verb: string;
  /** Percent-encoded, without the query. */
  readonly path: string;
}

/** One call as its transport holds it while the call runs through the pipeline. Each transport has its own class. */
export interface IncomingCall {
  readonly transport: Transport;
  /** Set by the pipeline as long as the call runs; null otherwise. */
  call: RunningCall | null;
  /** Returns a request header by its lower-case name. Several headers of one name are joined by `, `. */
  header(name: string): string | undefined;
  /** Throws `invalid_argument` if two keys were sent, as far as the transport can tell. */
  idempotencyKey(): string | undefined;
  address(): string;
  /** How long the caller waits, ms; Infinity if it set no deadline. */
  readonly timeoutMs: number;
  /**
   * Waits for the whole request. Returns undefined if there is nothing to wait for. Throws `payload_too_large`, or
   * `unavailable` if the caller has gone.
   */
  receive(): Promise<void> | undefined;
  /** The request's body or message, decompressed, once `receive` is done. Empty if there is none. */
  readonly received: Uint8Array;
  /** Returns what an ENTITY_REQUEST signature covers. Call it after `receive`. */
  signedRequest(): Omit<EntityRequest, 'timestamp'>;
  /** Checks the media type, the JSON and the fields, and returns the message. Call it after `receive`. */
  decode(): Decoded;
  /** Returns the text fields of a request refused with `error` that can be read, as far as it arrived. Never throws. */
  readable(error: LedgerError): Message;
  equivalent(message: Message | null): RestEquivalent;
  /** The query of the REST request, with its question mark; '' if there is none. */
  readonly query: string;
  /** Answers with an error. Call it once. */
  fail(call: RunningCall, error: LedgerError): void;
}

export interface UnaryCall extends IncomingCall {
  /**
   * Encodes the answer early. Throws `overloaded` for a read if the node has no room for the answer. Returns a promise
   * if the answer is being compressed.
   */
  encode?(answer: object): Promise<void> | void;
  /** Answers. Call it once. `answer` is a message or its plain form. */
  succeed(call: RunningCall, answer: object): void;
}

export interface StreamCall extends IncomingCall {
  /** Sends one answer. If it returns a promise, the caller reads too slowly: wait for it before the next answer. */
  send(call: RunningCall, answer: object): Promise<void> | undefined;
  end(call: RunningCall): void;
}

export interface BidiCall extends StreamCall {
  /** Ends without an error when `stop` is called or the caller has sent its last request. */
  readonly requests: AsyncIterable<Message> & {
    stop(): void;
    /** Parts (json-parts.ts) of the request that was taken last. */
    readonly takenParts: number;
  };
}
