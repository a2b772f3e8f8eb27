import type { ActorType } from '../../domain/event.ts';
import type { World } from '../call.ts';

/** Whom an API key belongs to. */
export interface KeyOwner {
  readonly actorId: string;
  readonly world: World;
  readonly apiKeyId: string;
}

/** Whom identity headers name. */
export interface NamedEntity {
  readonly actorId: string;
  readonly world: World | null;
  readonly actorType: ActorType;
  /** Has, or ever had, an enrolled key; or the service runs in production mode. */
  readonly mustSign: boolean;
}

/** What an ENTITY_REQUEST signature is over (decisions.md, section 4). */
export interface EntityRequest {
  /** In upper case. For gRPC and Connect: POST. */
  readonly method: string;
  /** As sent, with its query. For gRPC and Connect: /svc.v1.Service/Method. */
  readonly path: string;
  /** SHA-256, lower-case hex, of the raw body; for gRPC and Connect of the serialized request message, unpacked, as received. */
  readonly bodyHash: string;
  /** X-Timestamp as sent. */
  readonly timestamp: string;
}

/** Who is who. Every method may throw LedgerError `unavailable`. */
export interface Credentials {
  /** At once for a key that was seen a moment ago. Throws `invalid_api_key` for a key that is malformed, unknown or revoked. */
  byApiKey(key: string): KeyOwner | Promise<KeyOwner>;

  /** Throws `invalid_actor_identity` for an actor that is no entity, or not of that type. `actorId` is a UUID. */
  byEntityHeaders(actorId: string, actorType: ActorType): Promise<NamedEntity>;

  /**
   * Checks the signature of an ENTITY_REQUEST under an active key of the entity; its time was checked before. `keyId`
   * null: the preferred key is meant. Throws `invalid_signature`, `unknown_signing_key` (also for an entity without
   * keys) or `signing_key_revoked`.
   */
  verifyEntityRequest(actorId: string, keyId: string | null, signature: string, request: EntityRequest): Promise<void>;
}
