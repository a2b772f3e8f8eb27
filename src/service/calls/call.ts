import type { LedgerError } from '../../domain/errors.ts';
import type { ActorType, CommandKey } from '../../domain/event/event.ts';
import type { JsonNode } from '../../domain/json/json.ts';
import type { Walk } from '../walking/walk.ts';

/** Sandbox and production are separate: an actor or API key belongs to one of them at most. */
export type World = 'sandbox' | 'production';

export interface Caller {
  readonly actorId: string;
  /** null for an actor that belongs to neither world. */
  readonly world: World | null;
  /** An API key, or an entity's identity headers alone. */
  readonly via: 'api_key' | 'entity_header';
  readonly apiKeyId: string | null;
  readonly actorType: ActorType;
  /** Identity headers need a signature: the entity has, or ever had, a key, or the node is in production mode. */
  readonly mustSign: boolean;
}

/** The signing headers as sent. */
export interface CallSignature {
  /** X-Signing-Key-ID. null if it was left out: the preferred key is meant. */
  readonly keyId: string | null;
  /** X-Actor-Sig, base64. null if it was left out. */
  readonly signature: string | null;
  /** If left out, the caller does not say what it signed. */
  readonly stated?: StatedInput;
}

/** What the caller says that it signed, as sent. Read only to explain a signature that does not verify. */
export interface StatedInput {
  /** X-Actor-Digest, hex. null if it was left out. */
  readonly digest: string | null;
  /** X-Actor-Canonical, base64. null if it was left out. */
  readonly canonical: string | null;
}

/** What an ENTITY_REQUEST signature covers (docs/signing.md). */
export interface EntityRequest {
  /** In upper case. For gRPC and Connect: POST. */
  readonly method: string;
  /** As sent, with its query. For gRPC and Connect: /svc.v1.Service/Method. */
  readonly path: string;
  /** SHA-256, lower-case hex, of the raw body. For gRPC and Connect: of the message as received, decompressed. */
  readonly bodyHash: string;
  readonly timestamp: string;
}

export type AppendCall = Pick<
  Call,
  'requestId' | 'caller' | 'signature' | 'deliveryChain' | 'commandKey' | 'deadline' | 'markVerified'
>;

/** The refusal of an event that the rate does not allow, and when the rate allows the next one. */
export interface EventBeyondRate {
  readonly error: LedgerError;
  readonly retryAfterMs: number;
}

export interface Call {
  readonly requestId: string;
  /** null on methods that need no credential. */
  readonly caller: Caller | null;
  /** The caller's address, as rates count it: of IPv6 a /64. */
  readonly address: string;
  /** null if no signature was sent, or if it was that of an ENTITY_REQUEST, which is already checked. */
  readonly signature: CallSignature | null;
  readonly deliveryChain: string | null;
  /** The command key, on methods that write to an existing ledger. null if the call has no idempotency key. */
  readonly commandKey: CommandKey | null;
  /** Unix time, ms. If the call is retried with its idempotency key: the time of the first run. */
  readonly now: number;
  /** The next UUIDv7 of this call. A retry with the same idempotency key gets the same ids, and the same bytes. */
  newId(): string;
  randomBytes(length: number): Buffer;
  readonly signal: AbortSignal;
  readonly aborted: boolean;
  /** The error of `endWith`, from then on. */
  readonly ending: LedgerError | null;
  /** Whether the caller of a live stream takes nothing, and has not for a long time. */
  readonly isStalled: boolean;
  /** Called when the signal aborts. It costs less than a listener, and there is one: for what the call waits for now. */
  onAbort: (() => void) | null;
  /** All reads of this call that may be long go through it. */
  readonly walk: Walk;
  /**
   * Runs a read as a part of a stream that lasts: it has a walk of its own, whose place and memory are released and
   * whose cost is charged at its end.
   */
  partWalk<T>(read: (walk: Walk) => Promise<T>): Promise<T>;
  /**
   * Takes from the caller's rate what it costs to read the event of a stream that was taken last, by its parts
   * (json-parts.ts). Returns the refusal if the rate is used up; null otherwise.
   */
  admitEvent(): EventBeyondRate | null;
  /** An event of a stream was refused for good, not by a failure of the service. It counts as a call. */
  eventRefused(): void;
  /**
   * Counts an event of a stream that was answered with an error, and logs it if that may be the service's fault.
   * `isFirst`: of those of its ledger that may be retried; only then the cause is logged, since the ones behind it fail
   * for the same. `ms`: since it was taken.
   */
  eventFailed(clientIndex: bigint, error: LedgerError, isFirst: boolean, ms: number): void;
  /** Leaves a record in the caller's access history now. A live stream leaves the first one with its first message. */
  recordAccess(): void;
  /**
   * Leaves the records of the ledgers that an append stream has named, if they are many, and forgets them: a ledger
   * that is named again has another record. Returns undefined, or a promise that the stream has to wait for, because
   * its caller's records find no room. The promise never rejects.
   */
  recordNamed(): Promise<void> | undefined;
  /** Ends a live stream with an error, even while its caller takes nothing. Nothing more is sent, `signal` aborts. */
  endWith(error: LedgerError): void;
  /** When the answer must be given; Unix time, ms. */
  readonly deadline: number;
  /** Marks the answer as a replay of the first one (`Idempotent-Replayed: true`). */
  markReplayed(): void;
  /**
   * Returns the parsed form of a request field that is JSON text, by the field's name. The field itself has the
   * canonical text. null if there is none, and from the second time on: it is not kept while the call waits.
   */
  takeJson(field: string): JsonNode | null;
  /** Sets a header of a successful answer, by its lower-case name. REST answers 304 if the caller has this `etag`. */
  setHeader(name: string, value: string): void;
  /** The caller's signature was verified. A refused call of a caller that must sign is recorded only from here on. */
  markVerified(): void;
  /** The call names this ledger, which may not exist. null: an object whose ledger the caller may not know. */
  named(ledgerId: string | null): void;
}
