import { LedgerError, notFound, refusedValue } from '../../domain/errors.ts';
import {
  API_KEY_RANDOM_BYTES,
  apiKeyHash,
  apiKeyPrefix,
  formatApiKey,
  type Region,
} from '../../domain/keys/api-key.ts';
import { checkEmail, checkName, checkUuid } from '../../domain/values/fields.ts';
import { actorUri } from '../../domain/values/svc-uri.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { DeveloperService } from '../../gen/svc/v1/developer_pb.ts';
import type { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { ActorRecord } from '../actors/actor-record.ts';
import type { Identities } from '../actors/identities.ts';
import { enrolKey } from '../actors/signing-keys.ts';
import type { Call, World } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import { changingCollection } from '../records/collection.ts';
import type { Walk } from '../walking/walk.ts';
import { type ApiKeyRecord, apiKeyRules, apiKeysPerActorMax } from './api-key-record.ts';
import type { KeyCache } from './entity-credentials.ts';

/** Methods for developers: registration, and their API keys. */
export function developerService(records: RecordStore, identities: Identities, cache: KeyCache, changes: KeyedMutex) {
  const keys = changingCollection(records, apiKeyRules, changes);

  const activeKeys = async (actorId: string, walk: Walk): Promise<ApiKeyRecord[]> => {
    const active: ApiKeyRecord[] = [];
    for await (const key of keys.walk(walk, 'actor', actorId, { limit: Number.POSITIVE_INFINITY })) {
      if (key.revokedAt === null) active.push(key);
    }
    return active;
  };

  /**
   * Registers one of the two actors of a new developer, with its first API key. The key is written last: without it
   * nobody can use the actor.
   */
  const register = async (call: Call, actor: ActorRecord, environment: World, region: Region | null) => {
    await identities.create(actor);
    const { secret, record } = mintApiKey(call, { actorId: actor.actorId, environment, region, name: 'default' });
    await afterPartialWrite(keys.create(record));
    return { actorId: actor.actorId, svcId: actorUri(actor.actorId), environment, keyId: record.keyId, apiKey: secret };
  };

  return {
    registerDeveloper: async (request, call) => {
      const developer = { name: checkName('name', request.name), email: checkEmail('email', request.email) };
      const region = checkRegion(request.region);
      const fresh = (world: World): ActorRecord => ({
        actorId: call.newId(),
        role: 'PARTICIPANT',
        world,
        entity: null,
        developer,
        createdAt: isoTime(call.now),
        keys: [],
      });
      const bare = fresh('sandbox');
      const actor = request.publicKey === undefined ? bare : enrolKey(bare, request.publicKey, call.now);
      const sandbox = await register(call, actor, 'sandbox', null);
      const production = await afterPartialWrite(register(call, fresh('production'), 'production', region));
      const [key] = actor.keys;
      return {
        sandbox: key === undefined ? sandbox : { ...sandbox, signingKey: { kid: key.kid, algorithm: 'Ed25519' } },
        production: { ...production, region },
      };
    },

    getDeveloper: async (_request, call) => {
      const caller = callerOf(call);
      const actor = await identities.load(caller.actorId, call.walk);
      if (actor === null) throw notFound('actor');
      const held = await activeKeys(caller.actorId, call.walk);
      return {
        actorId: actor.actorId,
        svcId: actorUri(actor.actorId),
        role: actor.role,
        environment: caller.world ?? '',
        createdAt: actor.createdAt,
        keys: held.map(({ keyId, prefix, environment, name, createdAt }) => ({
          keyId,
          keyPrefix: prefix,
          environment,
          name,
          createdAt,
        })),
      };
    },

    createApiKey: async (request, call) => {
      const caller = callerOf(call);
      const name = checkName('name', request.name);
      const own = await keys.first('actor', caller.actorId);
      if (own === null) throw notFound('API key');
      const { secret, record } = mintApiKey(call, {
        actorId: caller.actorId,
        environment: own.environment,
        region: own.region === 'in' || own.region === 'eu' ? own.region : null,
        name,
      });
      const create = async (): Promise<void> => {
        const held = await activeKeys(caller.actorId, call.walk);
        // A retry after a crash finds the key that the first run made.
        if (held.length >= apiKeysPerActorMax && !held.some(({ keyId }) => keyId === record.keyId))
          throw new LedgerError(
            'invalid_argument',
            `An actor may hold at most ${apiKeysPerActorMax} API keys that are not revoked: revoke one first.`,
            { limit: apiKeysPerActorMax },
          );
        await keys.create(record);
      };
      // An actor's creations run one at a time. Otherwise calls that run at once could all find the last room.
      await changes.take(`API keys of ${caller.actorId}`, 'write', create, { signal: call.signal });
      return { keyId: record.keyId, apiKey: secret, environment: record.environment, name };
    },

    revokeApiKey: async (request, call) => {
      const caller = callerOf(call);
      const keyId = checkUuid('key_id', request.keyId);
      const at = isoTime(call.now);
      const found = await keys.first('key_id', keyId);
      // A retry after a crash finds the key as the first run revoked it.
      const isInForce = found?.revokedAt === null || found?.revokedAt === at;
      if (found === null || found.actorId !== caller.actorId || !isInForce) throw notFound('API key', 'key_id');
      const revoke = (key: ApiKeyRecord): ApiKeyRecord => (key.revokedAt === null ? { ...key, revokedAt: at } : key);
      await keys.update(found.hash, revoke, call.signal);
      cache.forget(found.hash, keyId);
      return {};
    },
  } satisfies Partial<HandlersOf<typeof DeveloperService>>;
}

/**
 * Makes an API key. Returns the secret, which is shown once, and the record to store. The key is made of the call's own
 * random bytes, so that a retry makes the same one.
 */
function mintApiKey(
  call: Call,
  owner: Pick<ApiKeyRecord, 'actorId' | 'environment' | 'name'> & { readonly region: Region | null },
): { readonly secret: string; readonly record: ApiKeyRecord } {
  const { environment, region } = owner;
  const keyId = call.newId();
  const secret = formatApiKey({ environment, region, random: call.randomBytes(API_KEY_RANDOM_BYTES) });
  const made = { hash: apiKeyHash(secret), keyId, prefix: apiKeyPrefix(secret) };
  return { secret, record: { ...owner, ...made, createdAt: isoTime(call.now), revokedAt: null } };
}

function checkRegion(region: string): Region {
  if (region === 'in' || region === 'eu') return region;
  throw refusedValue('region', region, '"in" or "eu"');
}
