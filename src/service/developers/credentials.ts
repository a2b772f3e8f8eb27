import type { LedgerError } from '../../domain/errors.ts';
import type { ActorType } from '../../domain/event/event.ts';
import type { CallSignature, EntityRequest, World } from '../calls/call.ts';

export interface KeyOwner {
  readonly actorId: string;
  readonly world: World;
  readonly apiKeyId: string;
}

interface NamedEntity {
  readonly actorId: string;
  readonly world: World | null;
  readonly actorType: ActorType;
  /** The entity has, or ever had, a signing key, or the service runs in production mode. */
  readonly mustSign: boolean;
}

/** The call whose credential is looked up. */
export interface UnknownCaller {
  /**
   * Called before the store is read for a credential that this node has not found valid lately. Takes a call from the
   * rate of the caller's address. Throws `rate_limited`.
   */
  admitUnknown(): void;
}

/** Authenticates callers. Every method may throw LedgerError `unavailable`. */
export interface Credentials {
  /**
   * Synchronous for a key that was checked within the last half second. Throws `invalid_api_key` if the key is
   * malformed, unknown or revoked.
   */
  byApiKey(key: string, unknown: UnknownCaller): KeyOwner | Promise<KeyOwner>;

  /** `actorId` is a UUID. Throws `invalid_actor_identity` if the actor is no entity, or not of that type. */
  byEntityHeaders(actorId: string, actorType: ActorType, unknown: UnknownCaller): Promise<NamedEntity>;

  /**
   * Checks the signature of an ENTITY_REQUEST under an active key of the entity. The caller has checked its timestamp.
   * Throws `invalid_signature`, `unknown_signing_key` (also if the entity has no keys) or `signing_key_revoked`.
   */
  verifyEntityRequest(actorId: string, sent: CallSignature, request: EntityRequest): Promise<void>;

  /** `tell` is called when an API key is revoked on this node, before that call is answered. It must not throw. */
  onRevoked(tell: (apiKeyId: string, error: LedgerError) => void): void;
}
