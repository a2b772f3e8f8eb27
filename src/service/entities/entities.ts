import { invalidField, LedgerError, notFound } from '../../domain/errors.ts';
import { parseJsonField } from '../../domain/json/json.ts';
import { checkPublicKey } from '../../domain/keys/public-key.ts';
import { checkLabel, checkLimit, checkName, checkOffset, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import { uuidV5 } from '../../domain/values/uuid.ts';
import type {
  CloseRootLedgerRequest,
  CreateRootLedgerRequest,
  GetEntityRequest,
  GetRootLedgerRequest,
  ListEntitiesRequest,
  OnboardEntityRequest,
  SetArlGateRequest,
} from '../../gen/svc/v1/entities_pb.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { ActorRecord } from '../actors/actor-record.ts';
import type { Identities } from '../actors/identities.ts';
import { enrolKey } from '../actors/signing-keys.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { checkOrder, tooFarInto } from '../calls/list-page.ts';
import { changeOnce } from '../idempotency/change-once.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { Walk } from '../walking/walk.ts';
import type { LedgerClosing } from '../writing/ledger-closing.ts';
import { facts, type LedgerOpening } from '../writing/ledger-opening.ts';
import {
  type EntityRecord,
  entityCollection,
  entityFilters,
  entityFingerprint,
  type FingerprintRecord,
  fingerprintCollection,
  metadataBytesMax,
} from './entity-record.ts';

type EntitySummary = Pick<EntityRecord, 'entityId' | 'actorId' | 'entityType' | 'displayName'>;

/** Entities examined for one filtered page at most. */
export const examinedMax = 20_000;

/**
 * The id of the root ledger (ARL) of an entity's actor. It is derived from the actor's id, so that there can be no
 * second one.
 */
export function rootLedgerId(actorId: string): string {
  return uuidV5(actorId, 'entity-root');
}

/** Methods for entities, their root ledgers and the ARL gate. */
export function entityService(
  records: RecordStore,
  identities: Identities,
  opening: LedgerOpening,
  reading: LedgerReading,
  close: LedgerClosing,
) {
  const entities = entityCollection(records);
  const fingerprints = fingerprintCollection(records);

  const ownEntity = async (call: Call): Promise<EntityRecord> => {
    const held = await entities.get(callerOf(call).actorId);
    if (held === null)
      throw new LedgerError('permission_denied', 'Only the actor of an entity itself may make this call.');
    return held.value;
  };

  /**
   * Creates the actor and the entity that a fingerprint record describes. A call that finds them unfinished finishes
   * them: the entity record is written last.
   */
  const finish = async (claim: FingerprintRecord): Promise<EntityRecord> => {
    const made = await entities.get(claim.entity.actorId);
    if (made !== null) return made.value;
    const { entity } = claim;
    const owner = entity.ownerActorId === null ? null : await identities.recent(entity.ownerActorId);
    const bare: ActorRecord = {
      actorId: entity.actorId,
      role: 'PARTICIPANT',
      world: owner?.world ?? null,
      entity: { entityId: entity.entityId, actorType: entity.actorType, ownerActorId: entity.ownerActorId },
      developer: null,
      createdAt: entity.createdAt,
      keys: [],
    };
    await identities.create(
      claim.publicKey === null ? bare : enrolKey(bare, claim.publicKey, Date.parse(entity.createdAt)),
    );
    await entities.create(entity);
    return entity;
  };

  const rootOf = async (call: Call, actorIdField: string) => {
    const actorId = checkUuid('actor_id', actorIdField);
    const ledgerId = rootLedgerId(actorId);
    const { facts: root } = await reading.readable(call.walk, ledgerId, callerOf(call).actorId, 'ENTITY_ROOT');
    return root;
  };

  return {
    onboardEntity: async (request: OnboardEntityRequest, call: Call) => {
      const entityType = checkLabel('entity_type', request.entityType);
      const uniqueId = checkName('unique_id', request.uniqueId);
      const displayName = checkName('display_name', request.displayName);
      const metadata = request.metadata === undefined ? '{}' : checkMetadata(request.metadata);
      const ownerActorId =
        request.ownerActorId === undefined ? null : checkUuid('owner_actor_id', request.ownerActorId);
      const publicKey = request.publicKey ?? null;
      if (publicKey !== null) checkPublicKey(publicKey);
      if (ownerActorId !== null && (await identities.recent(ownerActorId)) === null)
        throw notFound('actor', 'owner_actor_id');
      const entity: EntityRecord = {
        entityId: call.newId(),
        actorId: call.newId(),
        actorType: 'device',
        entityType,
        displayName,
        uniqueId,
        ownerActorId,
        metadata,
        trustLevel: 'BASIC',
        createdAt: isoTime(call.now),
        requireArl: false,
        arlGateUpdatedAt: null,
      };
      const fingerprint = entityFingerprint(entityType, uniqueId);
      await fingerprints.create({ fingerprint, entity, publicKey });
      const claim = await afterPartialWrite(fingerprints.get(fingerprint));
      if (claim === null) throw new Error('the fingerprint that was claimed is not there');
      const { entityId, actorId, actorType, trustLevel, ...made } = await afterPartialWrite(finish(claim.value));
      return {
        entityId,
        actorId,
        actorType,
        entityType,
        displayName: made.displayName,
        trustLevel,
        uniqueId,
        fingerprint,
      };
    },

    listEntities: async (request: ListEntitiesRequest, call: Call) => {
      const limit = checkLimit('limit', request.limit);
      const offset = checkOffset('offset', request.offset);
      const descending = checkOrder(request.order);
      const filters = {
        unique_id: request.uniqueId,
        display_name: request.displayName,
        entity_type: request.entityType,
        trust_level: request.trustLevel,
      };
      const found = await listed(filters, { limit, offset, descending }, call.walk);
      return { count: found.length, entities: found };
    },

    getEntity: async (request: GetEntityRequest, _call: Call) => {
      const held = await entities.get(checkUuid('actor_id', request.actorId));
      if (held === null) throw notFound('entity', 'actor_id');
      const { entityId, actorId, actorType, displayName, entityType, trustLevel, uniqueId, metadata, createdAt } =
        held.value;
      return { entityId, actorId, actorType, displayName, entityType, trustLevel, uniqueId, metadata, createdAt };
    },

    createRootLedger: async (_request: CreateRootLedgerRequest, call: Call) => {
      const { actorId, entityId } = await ownEntity(call);
      const root = facts('ENTITY_ROOT', { primaryActorId: actorId, counterpartyActorId: actorId, entityId });
      const opened = await opening.open(call, rootLedgerId(actorId), root, null);
      return {
        ledgerId: opened.ledgerId,
        entityActorId: actorId,
        ledgerType: opened.type,
        status: await afterPartialWrite(reading.ledgerStatus(opened.ledgerId)),
        genesisHash: opened.genesisHash,
      };
    },

    getRootLedger: async (request: GetRootLedgerRequest, call: Call) => {
      const root = await rootOf(call, request.actorId);
      return {
        ledgerId: root.ledgerId,
        primaryActorId: root.primaryActorId ?? '',
        ledgerType: root.type,
        status: await reading.ledgerStatus(root.ledgerId),
      };
    },

    closeRootLedger: async (request: CloseRootLedgerRequest, call: Call) => {
      const root = await rootOf(call, request.actorId);
      return close(call, root, 'optional');
    },

    setArlGate: async (request: SetArlGateRequest, call: Call) => {
      const { requireArl } = request;
      if (requireArl === undefined) throw invalidField('require_arl', 'true or false');
      const { actorId } = await ownEntity(call);
      const updatedAt = isoTime(call.now);
      await entities.update(
        actorId,
        changeOnce(call, (held) => ({ ...held, requireArl, arlGateUpdatedAt: updatedAt })),
      );
      return { requireArl, updatedAt };
    },
  };

  /**
   * Walks the list of the first filter that was given and checks the others on each entity. The filters are in the
   * order of how few entities they leave.
   */
  async function listed(
    filters: Readonly<Record<keyof typeof entityFilters, string | undefined>>,
    page: { readonly limit: number; readonly offset: number; readonly descending: boolean },
    walk: Walk,
  ): Promise<EntitySummary[]> {
    const names = Object.keys(entityFilters) as (keyof typeof entityFilters)[];
    const [first, ...others] = names.filter((name) => filters[name] !== undefined);
    const isAsked = (entity: EntityRecord) =>
      others.every((filter) => entityFilters[filter](entity) === filters[filter]);
    // Without a second filter the store can skip the offset.
    const { limit, offset, descending } = page;
    const walked = others.length === 0 ? page : { limit: examinedMax + 1, descending };
    let toSkip = others.length === 0 ? 0 : offset;
    let examined = 0;
    const found: EntitySummary[] = [];
    for await (const entity of entities.walk(
      walk,
      first ?? 'all',
      first === undefined ? '' : (filters[first] ?? ''),
      walked,
    )) {
      if (++examined > examinedMax) throw tooFarInto('entities', examinedMax);
      if (!isAsked(entity) || toSkip-- > 0) continue;
      const { entityId, actorId, entityType, displayName } = entity;
      found.push({ entityId, actorId, entityType, displayName });
      if (found.length === limit) break;
    }
    return found;
  }
}

function checkMetadata(metadata: string): string {
  const node = parseJsonField(metadata);
  if (node.kind !== 'object') throw invalidField('metadata', 'a JSON object');
  if (Buffer.byteLength(node.canonical) > metadataBytesMax) {
    const limit_bytes = metadataBytesMax;
    const message = `metadata has at most ${limit_bytes} bytes of canonical JSON.`;
    throw new LedgerError('payload_too_large', message, { field: 'metadata', limit_bytes });
  }
  return node.canonical;
}
