import { invalidField, LedgerError, notFound, refusedValue } from '../../domain/errors.ts';
import { parseJsonField } from '../../domain/json/json.ts';
import { checkPublicKey } from '../../domain/keys/public-key.ts';
import { checkLabel, checkName, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import { uuidV5 } from '../../domain/values/uuid.ts';
import type { EntityService } from '../../gen/svc/v1/entities_pb.ts';
import type { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { ActorRecord } from '../actors/actor-record.ts';
import type { Identities } from '../actors/identities.ts';
import { enrolKey } from '../actors/signing-keys.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage, tooFarInto } from '../calls/list-page.ts';
import { checkCanonicalBytes } from '../encoding/canonical-bytes.ts';
import { changeOnce } from '../idempotency/change-once.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { changingCollection, collection } from '../records/collection.ts';
import type { Walk } from '../walking/walk.ts';
import type { LedgerClosing } from '../writing/ledger-closing.ts';
import { facts, type LedgerOpening } from '../writing/ledger-opening.ts';
import {
  type EntityRecord,
  entityFilters,
  entityFingerprint,
  entityRules,
  type FingerprintRecord,
  fingerprintRules,
  metadataBytesMax,
} from './entity-record.ts';

/** Entities examined for one filtered page at most. */
export const examinedMax = 20_000;

/** The id of the root ledger (ARL) of an entity's actor. It is derived, so that there can be no second one. */
export function rootLedgerId(actorId: string): string {
  return uuidV5(actorId, 'entity-root');
}

export function entityService(
  records: RecordStore,
  identities: Identities,
  open: LedgerOpening,
  reading: LedgerReading,
  close: LedgerClosing,
  changes: KeyedMutex,
) {
  const entities = changingCollection(records, entityRules, changes);
  const fingerprints = collection(records, fingerprintRules);

  const ownEntity = async (call: Call): Promise<EntityRecord> => {
    const held = await entities.get(callerOf(call).actorId);
    if (held !== null) return held.value;
    throw new LedgerError('permission_denied', 'Only the actor of an entity itself may make this call.');
  };

  /** Creates the actor and the entity of a fingerprint. The entity is written last, so a later call can finish them. */
  const finish = async ({ entity, publicKey }: FingerprintRecord): Promise<EntityRecord> => {
    const made = await entities.get(entity.actorId);
    if (made !== null) return made.value;
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
    await identities.create(publicKey === null ? bare : enrolKey(bare, publicKey, Date.parse(entity.createdAt)));
    await entities.create(entity);
    return entity;
  };

  const rootOf = async (call: Call, actorIdField: string) => {
    const ledgerId = rootLedgerId(checkUuid('actor_id', actorIdField));
    return (await reading.wholeLedger(call.walk, ledgerId, callerOf(call).actorId, 'ENTITY_ROOT')).facts;
  };

  return {
    onboardEntity: async (request, call) => {
      const entityType = checkLabel('entity_type', request.entityType);
      const uniqueId = checkName('unique_id', request.uniqueId);
      const displayName = checkName('display_name', request.displayName);
      const metadata = request.metadata === undefined ? '{}' : checkMetadata(request.metadata);
      const ownerActorId =
        request.ownerActorId === undefined ? null : checkUuid('owner_actor_id', request.ownerActorId);
      const publicKey = request.publicKey ?? null;
      if (publicKey !== null) checkPublicKey(publicKey);
      if (ownerActorId !== null && (await identities.recentOther(ownerActorId)) === null)
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
      const made = await afterPartialWrite(finish(claim.value));
      const { entityId, actorId, actorType, trustLevel } = made;
      const given = { entityType, displayName: made.displayName, uniqueId };
      return { entityId, actorId, actorType, trustLevel, ...given, fingerprint };
    },

    listEntities: async (request, call) => {
      const page = checkListPage(request);
      const filters = {
        unique_id: request.uniqueId,
        display_name: request.displayName,
        entity_type: request.entityType,
        trust_level: request.trustLevel,
      };
      const found = await listed(filters, page, call.walk);
      return { count: found.length, entities: found };
    },

    getEntity: async (request, _call) => {
      const held = await entities.get(checkUuid('actor_id', request.actorId));
      if (held === null) throw notFound('entity', 'actor_id');
      const { entityId, actorId, actorType, displayName, entityType, trustLevel, uniqueId, metadata, createdAt } =
        held.value;
      return { entityId, actorId, actorType, displayName, entityType, trustLevel, uniqueId, metadata, createdAt };
    },

    createRootLedger: async (_request, call) => {
      const { actorId, entityId } = await ownEntity(call);
      const root = facts('ENTITY_ROOT', { primaryActorId: actorId, counterpartyActorId: actorId, entityId });
      const opened = await open(call, rootLedgerId(actorId), root);
      return {
        ledgerId: opened.ledgerId,
        entityActorId: actorId,
        ledgerType: opened.type,
        status: await afterPartialWrite(reading.ledgerStatus(opened.ledgerId)),
        genesisHash: opened.genesisHash,
      };
    },

    getRootLedger: async (request, call) => {
      const root = await rootOf(call, request.actorId);
      return {
        ledgerId: root.ledgerId,
        primaryActorId: root.primaryActorId ?? '',
        ledgerType: root.type,
        status: await reading.ledgerStatus(root.ledgerId),
      };
    },

    closeRootLedger: async (request, call) => {
      return close(call, await rootOf(call, request.actorId), 'optional');
    },

    setArlGate: async (request, call) => {
      const { requireArl } = request;
      if (requireArl === undefined) throw refusedValue('require_arl', requireArl, 'true or false');
      const { actorId } = await ownEntity(call);
      const updatedAt = isoTime(call.now);
      await entities.update(
        actorId,
        changeOnce(call, (held) => ({ ...held, requireArl, arlGateUpdatedAt: updatedAt })),
        call.signal,
      );
      return { requireArl, updatedAt };
    },
  } satisfies Partial<HandlersOf<typeof EntityService>>;

  /** Walks the list of the first filter that was given and checks the others on each entity. */
  async function listed(
    filters: Readonly<Record<keyof typeof entityFilters, string | undefined>>,
    page: ReturnType<typeof checkListPage>,
    walk: Walk,
  ) {
    const names = Object.keys(entityFilters) as (keyof typeof entityFilters)[];
    const [first, ...others] = names.filter((name) => filters[name] !== undefined);
    // Without a second filter the store can skip the offset.
    const isSkippedByStore = others.length === 0;
    const walked = isSkippedByStore ? page : { limit: examinedMax + 1, descending: page.descending };
    let toSkip = isSkippedByStore ? 0 : page.offset;
    let examined = 0;
    const found: Pick<EntityRecord, 'entityId' | 'actorId' | 'entityType' | 'displayName'>[] = [];
    const [name, value] = first === undefined ? ['all', ''] : [first, filters[first] ?? ''];
    for await (const entity of entities.walk(walk, name, value, walked)) {
      if (++examined > examinedMax) throw tooFarInto('entities', examinedMax);
      if (others.some((other) => entityFilters[other](entity) !== filters[other]) || toSkip-- > 0) continue;
      const { entityId, actorId, entityType, displayName } = entity;
      found.push({ entityId, actorId, entityType, displayName });
      if (found.length === page.limit) break;
    }
    return found;
  }
}

function checkMetadata(metadata: string): string {
  const node = parseJsonField(metadata);
  if (node.kind !== 'object') throw invalidField('metadata', 'a JSON object');
  checkCanonicalBytes(node, metadataBytesMax, { field: 'metadata', subject: 'metadata has' });
  return node.canonical;
}
