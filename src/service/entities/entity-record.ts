import type { ActorType } from '../../domain/event/event.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import type { ChangedRecord } from '../idempotency/change-once.ts';
import type { CollectionRules } from '../records/collection.ts';
import { flag, listOf, objectOf, optional, text, textOrNull } from '../records/record-form.ts';

/**
 * Bytes of an entity's metadata in canonical form. It is small, because onboarding needs no credential, and lists read
 * the metadata with every record.
 */
export const metadataBytesMax = 16 * 1024;

export interface EntityRecord extends ChangedRecord {
  readonly entityId: string;
  readonly actorId: string;
  readonly actorType: ActorType;
  readonly entityType: string;
  readonly displayName: string;
  readonly uniqueId: string;
  readonly ownerActorId: string | null;
  readonly metadata: string;
  readonly trustLevel: 'BASIC';
  readonly createdAt: string;
  readonly requireArl: boolean;
  readonly arlGateUpdatedAt: string | null;
}

/** The filters of the entity list, by their names in the API. The order is that of how few entities they leave. */
export const entityFilters = {
  unique_id: (entity: EntityRecord) => entity.uniqueId,
  display_name: (entity: EntityRecord) => entity.displayName,
  entity_type: (entity: EntityRecord) => entity.entityType,
  trust_level: (entity: EntityRecord) => entity.trustLevel,
} as const;

export const entityRules: CollectionRules<EntityRecord> = {
  kind: 'entity',
  form: {
    entityId: text,
    actorId: text,
    actorType: text,
    entityType: text,
    displayName: text,
    uniqueId: text,
    ownerActorId: textOrNull,
    metadata: text,
    trustLevel: text,
    createdAt: text,
    requireArl: flag,
    arlGateUpdatedAt: textOrNull,
    changedBy: optional(listOf(text)),
  },
  id: (entity) => entity.actorId,
  lookups: (entity) => [
    { name: 'all', value: '', order: entity.createdAt },
    ...Object.entries(entityFilters).map(([name, of]) => ({ name, value: of(entity), order: entity.createdAt })),
  ],
};

/** Claims a fingerprint for one entity. It has all that is needed to create the entity. */
export interface FingerprintRecord {
  readonly fingerprint: string;
  readonly entity: EntityRecord;
  /** base64 key to enrol as key-1, or null. */
  readonly publicKey: string | null;
}

export const fingerprintRules: CollectionRules<FingerprintRecord> = {
  kind: 'entity_fingerprint',
  form: { fingerprint: text, entity: objectOf(entityRules.form), publicKey: textOrNull },
  id: (claim) => claim.fingerprint,
  lookups: () => [],
};

/** SHA-256 hex of the entity type, 0x00 and the unique id. */
export function entityFingerprint(entityType: string, uniqueId: string): string {
  return sha256Hex(`${entityType}\0${uniqueId}`);
}
