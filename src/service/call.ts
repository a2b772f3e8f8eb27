import type { ActorType, CommandKey } from '../domain/event.ts';
import type { JsonNode } from '../domain/json.ts';
import type { Walk } from './walk.ts';

/** Sandbox and production are separate worlds (decisions.md, section 4). */
export type World = 'sandbox' | 'production';

/** Who is calling, after the credential was checked. */
export interface Caller {
  readonly actorId: string;
  /** null for an actor that belongs to neither world. */
  readonly world: World | null;
  /** An API key, or the bare identity headers of an entity. */
  readonly via: 'api_key' | 'entity_header';
  readonly apiKeyId: string | null;
  /** What the caller's events carry as actor_type. */
  readonly actorType: ActorType;
  /** Header identity that must be backed by a signature: the entity has, or ever had, a key, or the node runs in production mode. */
  readonly mustSign: boolean;
}

/** The signing headers as sent. */
export interface CallSignature {
  /** X-Signing-Key-ID; null where it was left out and the preferred key is meant. */
  readonly keyId: string | null;
  /** X-Actor-Sig, base64; null where it was left out. */
  readonly signature: string | null;
}

/** What a service function knows of the call it serves, whichever transport it came through. */
export interface Call {
  readonly requestId: string;
  /** null on methods that need no credential. */
  readonly caller: Caller | null;
  /** null where no signature was sent, or where it was that of an ENTITY_REQUEST, which the transport has checked. */
  readonly signature: CallSignature | null;
  /** X-Delivery-Chain as sent. */
  readonly deliveryChain: string | null;
  /** On methods that write to an existing ledger: the command's mark, where the call has an idempotency key. */
  readonly command: CommandKey | null;
  /** Milliseconds since 1970. On a call that is run again with its idempotency key: the time of the first run. */
  readonly now: number;
  /** The next UUIDv7 of this call; the same sequence again when the call is run again with its idempotency key. */
  newId(): string;
  /** The next random bytes of this call; repeated likewise. */
  randomBytes(length: number): Buffer;
  /** Ends when the caller has gone or its deadline has passed. */
  readonly signal: AbortSignal;
  /** All reading of this call that may be long goes through it. */
  readonly walk: Walk;
  /** When the answer must be given: milliseconds since 1970. */
  readonly deadline: number;
  /** Says that the answer is the first one again (`Idempotent-Replayed: true`). */
  markReplayed(): void;
  /**
   * The parsed form of a request field that is JSON text, by the field's name; the field itself holds its canonical text. Handed out
   * once, so that it is not kept while the call waits.
   */
  takeJson(field: string): JsonNode | null;
  /**
   * Sets a header of a successful answer, by its lower-case name; gRPC sends it as metadata. REST answers 304 by itself
   * where an `etag` that was set here is the one that the caller has.
   */
  setHeader(name: string, value: string): void;
  /** Says that the caller has signed: of an entity whose signature is its only credential, a refused call counts as its own from here on. */
  markVerified(): void;
  /** Says that the call names this ledger, existing or not: it goes into the caller's access history (decisions.md, section 5). */
  named(ledgerId: string | null): void;
}
