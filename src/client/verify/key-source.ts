import { actorUri } from '../../domain/values/svc-uri.ts';
import type { AuthorityKey, GetAuthorityResponse, ResolveActorResponse } from '../../gen/svc/v1/resolver_pb.ts';
import { LedgerTrustError } from '../error.ts';
import type { Answer } from '../shapes.ts';

/** The part of a resolver document that verifying needs. */
export type ActorDocument = Pick<Answer<ResolveActorResponse>, 'actorId' | 'keys'>;
export type ActorDocumentKey = ActorDocument['keys'][number];

/** Where the public keys of actors come from. It need not be the service that the events come from. */
export interface KeySource {
  /** Whether the keys come from a resolver that the caller named, not with the events. false if left out. */
  readonly isResolver?: boolean;
  /** The resolver document of an actor. null: none is at hand, and the actor's signatures cannot be checked. */
  document(actorId: string): Promise<ActorDocument | null> | ActorDocument | null;
}

/**
 * Keys from saved resolver documents. They are not trusted by default, since documents that came with the events prove
 * nothing. If you got them from another source, say so with `trustedKeys`.
 */
export function keysFromDocuments(documents: Iterable<ActorDocument>): KeySource {
  const byActor = new Map([...documents].map((document) => [document.actorId, document]));
  return { document: (actorId) => byActor.get(actorId) ?? null };
}

/** Keys from a resolver, which may be another service than that of the events. Each actor is resolved once. */
export function keysFromResolver(client: {
  resolveActor(request: { readonly svcUri: string }): Promise<ActorDocument>;
}): KeySource {
  const asked = new Map<string, Promise<ActorDocument>>();
  const ask = async (actorId: string): Promise<ActorDocument> => {
    try {
      return await client.resolveActor({ svcUri: actorUri(actorId) });
    } catch (error) {
      // A nonexistent actor has no keys.
      if (error instanceof LedgerTrustError && error.code === 'not_found') return { actorId, keys: [] };
      asked.delete(actorId);
      throw error;
    }
  };
  return {
    isResolver: true,
    document(actorId) {
      const found = asked.get(actorId) ?? ask(actorId);
      asked.set(actorId, found);
      return found;
    },
  };
}

/** The keys of the authority, as its trust anchor publishes them. */
export type AuthorityKeys = readonly Answer<AuthorityKey>[];

/** The part of the trust anchor document that verifying needs. `log`: who signs checkpoints, null if nobody does. */
export type AuthorityDocument = Pick<Answer<GetAuthorityResponse>, 'keys' | 'phase' | 'log'>;

/** The keys of a trust anchor document. Returns null if it publishes none. */
export function authorityKeysOf(anchor: Pick<AuthorityDocument, 'keys'>): AuthorityKeys | null {
  return anchor.keys.length === 0 ? null : anchor.keys;
}
