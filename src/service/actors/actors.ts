import { isAbsent, LedgerError, notFound, refusedValue } from '../../domain/errors.ts';
import { checkPublicKey } from '../../domain/keys/public-key.ts';
import { kidFromPath } from '../../domain/keys/signature.ts';
import { checkActorUri, checkLabel, checkName, checkUuid } from '../../domain/values/fields.ts';
import { actorUri } from '../../domain/values/svc-uri.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ActorService } from '../../gen/svc/v1/actors_pb.ts';
import type { FindPage } from '../../store/record-store.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage } from '../calls/list-page.ts';
import { changeOnce } from '../idempotency/change-once.ts';
import type { Walk } from '../walking/walk.ts';
import type { ActorRecord, SigningKeyRecord } from './actor-record.ts';
import type { Identities } from './identities.ts';
import type { RevokeKey } from './key-revocation.ts';
import { mergedPage } from './merged-page.ts';
import { enrolKey, keyStatus, preferKey } from './signing-keys.ts';

export function actorService(identities: Identities, revoke: RevokeKey) {
  /** `walk`: see `Identities.load`. */
  const known = async (actorId: string, walk?: Walk): Promise<ActorRecord> => {
    const actor = await identities.load(checkUuid('actor_id', actorId), walk);
    if (actor === null) throw notFound('actor', 'actor_id');
    return actor;
  };

  /** The actor, if the caller may change its keys. Throws `not_found` or `permission_denied`. */
  const keyHolder = async (actorId: string, call: Call): Promise<ActorRecord> => {
    const caller = callerOf(call);
    // Who may change the keys takes no place of long reads: a key must be revoked in any case.
    const walk = identities.isKnownHolder(caller.actorId, actorId) ? undefined : call.walk;
    const actor = await known(actorId, walk);
    if ([actor.actorId, actor.entity?.ownerActorId].includes(caller.actorId)) return actor;
    throw new LedgerError(
      'permission_denied',
      'Keys are changed with an API key of their own actor, or of the owner of the entity.',
    );
  };

  return {
    createActor: async (request, call) => {
      const role = request.role === undefined ? 'PARTICIPANT' : checkLabel('role', request.role);
      checkAlgorithm(request.algorithm);
      const bare: ActorRecord = {
        actorId: call.newId(),
        role,
        world: null,
        entity: null,
        developer: null,
        createdAt: isoTime(call.now),
        keys: [],
      };
      const actor = request.publicKey === undefined ? bare : enrolKey(bare, request.publicKey, call.now);
      await identities.create(actor);
      const [key] = actor.keys;
      const answer = { actorId: actor.actorId, svcId: actorUri(actor.actorId), role };
      if (key === undefined) return answer;
      const { kid, algorithm, publicKey, status, preferredSigning } = keyMessage(key);
      return { ...answer, key: { kid, algorithm, publicKey, status, preferredSigning } };
    },

    getActor: async (request, call) => {
      const { actorId, role, createdAt } = await known(request.actorId, call.walk);
      return { actorId, svcId: actorUri(actorId), role, createdAt };
    },

    lookupActor: async (request, call) => {
      const actor = await known(checkActorUri('svc_id', request.svcId), call.walk);
      const svcId = actorUri(actor.actorId);
      return { svcId, actorId: actor.actorId, role: actor.role, resolveUrl: `/resolve/${svcId}` };
    },

    listActorKeys: async (request, call) => {
      const actor = await known(request.actorId, call.walk);
      const all = request.includeRevoked === true;
      return identities.answer(call.walk, actor, all ? 'all keys' : 'keys', () => ({
        keys: actor.keys.filter((key) => all || key.revokedAt === null).map(keyMessage),
      }));
    },

    enrollActorKey: async (request, call) => {
      checkPublicKey(request.publicKey);
      checkAlgorithm(request.algorithm);
      const { actorId } = await keyHolder(request.actorId, call);
      const changed = await identities.update(
        actorId,
        changeOnce(call, (actor) => enrolKey(actor, request.publicKey, call.now)),
        call.signal,
      );
      const key = changed.keys.find((held) => held.publicKey === request.publicKey);
      if (key === undefined) throw new Error(`the key enrolled for ${actorId} is not there`);
      return { kid: key.kid, algorithm: 'Ed25519', status: keyStatus(key) };
    },

    preferActorKey: async (request, call) => {
      demandKid(request.kid);
      const { actorId } = await keyHolder(request.actorId, call);
      const kid = checkKid(actorId, request.kid);
      await identities.update(
        actorId,
        changeOnce(call, (actor) => preferKey(actor, kid)),
        call.signal,
      );
      return {};
    },

    revokeActorKey: async (request, call) => {
      const reason = request.reason === undefined ? null : checkName('reason', request.reason);
      demandKid(request.kid);
      const actor = await keyHolder(request.actorId, call);
      const kid = checkKid(actor.actorId, request.kid);
      await revoke({ actor, kid, reason, askedMs: call.now, signal: call.signal });
      return {};
    },

    listNetworkActors: async (request, call) => {
      const { world: own } = callerOf(call);
      const page = checkListPage(request);
      const worlds = own === null ? ['none'] : [own, 'none'];
      const lists = worlds.map((world) => (part: FindPage) => identities.list(call.walk, world, part));
      const actors = await mergedPage(lists, ({ createdAt, actorId }) => ({ order: createdAt, id: actorId }), page);
      return {
        count: actors.length,
        limit: page.limit,
        offset: page.offset,
        actors: actors.map(({ actorId, role }) => ({ actorId, svcId: actorUri(actorId), role })),
      };
    },
  } satisfies Partial<HandlersOf<typeof ActorService>>;
}

/** A key as key lists and the resolver show it. */
export function keyMessage(key: SigningKeyRecord) {
  return {
    kid: key.kid,
    algorithm: 'Ed25519',
    publicKey: key.publicKey,
    status: keyStatus(key),
    preferredSigning: key.preferred,
    validFrom: key.validFrom,
    createdAt: key.createdAt,
    ...(key.revokedAt === null ? {} : { revokedAt: key.revokedAt }),
    ...(key.revokedReason === null ? {} : { revokedReason: key.revokedReason }),
  };
}

function checkAlgorithm(algorithm: string | undefined): void {
  if (algorithm !== undefined && algorithm !== 'Ed25519') throw refusedValue('algorithm', algorithm, '"Ed25519"');
}

function demandKid(kid: string): void {
  if (isAbsent(kid)) throw refusedValue('kid', kid, 'the kid of a key of this actor');
}

function checkKid(actorId: string, text: string): string {
  const kid = kidFromPath(actorId, text);
  if (kid === null) throw notFound('key', 'kid');
  return kid;
}
