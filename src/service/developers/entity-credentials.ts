import { LedgerError } from '../../domain/errors.ts';
import { apiKeyHash, parseApiKey } from '../../domain/keys/api-key.ts';
import { entityRequestForm } from '../../domain/keys/entity-request.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Identities } from '../actors/identities.ts';
import { signatureDetails } from '../actors/signature-details.ts';
import { verifyForms } from '../actors/signing.ts';
import { apiKeyCollection } from './api-key-record.ts';
import type { Credentials, KeyOwner, UnknownCaller } from './credentials.ts';

/**
 * How long a valid API key is cached, ms. A revoked key is refused on all nodes within a second; so are its streams,
 * whose keys are looked at every `streamCredentialCheckMs`.
 */
export const keyFreshMs = 500;
const keysCachedMax = 10_000;

export interface KeyCache {
  /** Removes a revoked key, so that this node refuses it at once and ends its streams. */
  forget(hash: string, apiKeyId: string): void;
}

/** Authenticates API keys, and entities by their identity headers. */
export function storedCredentials(
  records: RecordStore,
  identities: Identities,
  options: { readonly production: boolean; readonly now: () => number },
): Credentials & KeyCache {
  const keys = apiKeyCollection(records);
  const cache = new RecentMap<string, { readonly owner: KeyOwner; readonly readAt: number }>(keysCachedMax);
  const listeners: Parameters<Credentials['onRevoked']>[0][] = [];

  const byApiKey = (text: string, unknown: UnknownCaller): KeyOwner | Promise<KeyOwner> => {
    if (parseApiKey(text) === null) throw badKey();
    const hash = apiKeyHash(text);
    const now = options.now();
    const cached = cache.get(hash);
    if (cached === undefined) unknown.admitUnknown();
    else if (cached.readAt > now - keyFreshMs) return cached.owner;
    return readKey(hash, now);
  };

  const readKey = async (hash: string, now: number): Promise<KeyOwner> => {
    const held = await keys.get(hash);
    if (held === null || held.value.revokedAt !== null) {
      cache.delete(hash);
      throw badKey();
    }
    const { actorId, environment, keyId } = held.value;
    const owner: KeyOwner = { actorId, world: environment, apiKeyId: keyId };
    cache.set(hash, { owner, readAt: now });
    return owner;
  };

  return {
    byApiKey,
    forget: (hash, apiKeyId) => {
      cache.delete(hash);
      for (const tell of listeners) tell(apiKeyId, badKey());
    },
    onRevoked: (tell) => void listeners.push(tell),
    byEntityHeaders: async (actorId, actorType, unknown) => {
      if (!identities.isCached(actorId)) unknown.admitUnknown();
      const actor = await identities.recent(actorId);
      if (actor?.entity == null || actor.entity.actorType !== actorType) {
        throw new LedgerError(
          'invalid_actor_identity',
          'X-ACTOR-ID and X-ACTOR-TYPE must name an onboarded entity and its type; every other actor sends an API key.',
          { header: 'X-ACTOR-ID' },
        );
      }
      return { actorId, world: actor.world, actorType, mustSign: options.production || actor.keys.length > 0 };
    },
    verifyEntityRequest: async (actorId, sent, request) => {
      const recent = await identities.recent(actorId);
      if (recent === null)
        throw new LedgerError('invalid_actor_identity', 'X-ACTOR-ID names no entity.', { header: 'X-ACTOR-ID' });
      const forms = [entityRequestForm(request)] as const;
      const input = { eventType: 'ENTITY_REQUEST', ledgerId: actorId, forms } as const;
      const message = 'X-Actor-Sig does not verify as an ENTITY_REQUEST over the JSON given in details.';
      await verifyForms(identities, recent, sent, input, { message, details: signatureDetails });
    },
  };
}

function badKey(): LedgerError {
  return new LedgerError(
    'invalid_api_key',
    'The API key in the Authorization header is not valid: check it for typing errors, or make a new one if it was revoked.',
    { header: 'Authorization' },
  );
}
