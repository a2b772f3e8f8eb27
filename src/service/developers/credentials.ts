import type { ActorType } from '../../domain/event/event.ts';
import type { World } from '../calls/call.ts';

/** The owner of an API key. */
export interface KeyOwner {
  readonly actorId: string;
  readonly world: World;
  readonly apiKeyId: string;
}

/** The entity that identity headers name. */
interface NamedEntity {
  readonly actorId: string;
  readonly world: World | null;
  readonly actorType: ActorType;
  /** The entity has, or ever had, a signing key, or the service runs in production mode. */
  readonly mustSign: boolean;
}

/** What an ENTITY_REQUEST signature covers (docs/api.md). */
export interface EntityRequest {
  /** In upper case. For gRPC and Connect: POST. */
  readonly method: string;
  /** As sent, with its query. For gRPC and Connect: /svc.v1.Service/Method. */
  readonly path: string;
  /**
   * SHA-256, lower-case hex, of the raw body. For gRPC and Connect: of the serialized request message, decompressed, as
   * received.
   */
  readonly bodyHash: string;
  /** X-Timestamp as sent. */
  readonly timestamp: string;
}

/** Authenticates callers. Every method may throw LedgerError `unavailable`. */
export interface Credentials {
  /**
   * Synchronous for a key that was checked within the last second. Throws `invalid_api_key` if the key is malformed,
   * unknown or revoked.
   */
  byApiKey(key: string): KeyOwner | Promise<KeyOwner>;

  /** `actorId` is a UUID. Throws `invalid_actor_identity` if the actor is no entity, or not of that type. */
  byEntityHeaders(actorId: string, actorType: ActorType): Promise<NamedEntity>;

  /**
   * Checks the signature of an ENTITY_REQUEST under an active key of the entity. The caller has checked its timestamp.
   * `keyId` is null if the preferred key is meant. Throws `invalid_signature`, `unknown_signing_key` (also if the
   * entity has no keys) or `signing_key_revoked`.
   */
  verifyEntityRequest(actorId: string, keyId: string | null, signature: string, request: EntityRequest): Promise<void>;
}
