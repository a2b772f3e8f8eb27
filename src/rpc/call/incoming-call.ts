import type { Message } from '@bufbuild/protobuf';
import type { LedgerError } from '../../domain/errors.ts';
import type { JsonNode } from '../../domain/json.ts';
import type { EntityRequest } from '../../service/credentials/credentials.ts';
import type { RunningCall } from './running-call.ts';
import type { Transport } from './transport.ts';

/** A request message, with its fields of JSON text in canonical form. */
export interface Decoded {
  readonly message: Message;
  /** The parsed form of those fields, by field name, until the handler takes it. */
  readonly json: Map<string, JsonNode>;
}

/** The REST request that a call is, or would be: what idempotency keys and access history go by. */
export interface RestEquivalent {
  readonly verb: string;
  /** Percent-encoded, without the query. */
  readonly path: string;
}

/** One call as a transport holds it while it runs through the pipeline. Each transport has its own kind. */
export interface IncomingCall {
  readonly transport: Transport;
  /** The call that it runs as, while it runs; set by the pipeline. */
  call: RunningCall | null;
  /** A request header by its lower-case name; one sent several times comes joined by `, `. */
  header(name: string): string | undefined;
  /** Throws `invalid_argument` where two were sent, as far as the transport can tell. */
  idempotencyKey(): string | undefined;
  /** The caller's address. */
  address(): string;
  /** How long the caller waits, in milliseconds; Infinity if it did not say. */
  readonly timeoutMs: number;
  /**
   * Waits for the whole request. Throws `payload_too_large`, or LedgerError `unavailable` for a caller that went away.
   */
  receive(): Promise<void> | undefined;
  /** What an ENTITY_REQUEST signature is over, after receive. */
  signedRequest(): Omit<EntityRequest, 'timestamp'>;
  /** Media type, JSON, fields: the message, after receive. */
  decode(): Decoded;
  /**
   * What can be read of a request that was refused: its texts, each by itself, as far as the request came. Never
   * throws.
   */
  readable(): Message;
  equivalent(message: Message | null): RestEquivalent;
  /** Of the REST request that it is, with the question mark; '' if none. */
  readonly query: string;
  /** Answers with an error, once. */
  fail(call: RunningCall, error: LedgerError): void;
}

export interface UnaryCall extends IncomingCall {
  /**
   * Makes the answer's bytes, where the transport makes them itself. Throws `overloaded` for a read whose answer the
   * node has no room for.
   */
  encode?(answer: object): void;
  /** Answers, once. `answer` is a message or its plain form. */
  succeed(call: RunningCall, answer: object): void;
}

export interface StreamCall extends IncomingCall {
  /** Sends one answer. A promise: wait for it before the next, the caller does not read fast enough. */
  send(call: RunningCall, answer: object): Promise<void> | undefined;
  /** All answers were sent. */
  end(call: RunningCall): void;
}

export interface BidiCall extends StreamCall {
  /** The requests as they come. Ends, without an error, when `stop` is called or the caller has sent its last. */
  readonly requests: AsyncIterable<Message> & { stop(): void };
}
