import type { KeyObject } from 'node:crypto';
import { verifyingKey } from '../domain/public-key.ts';
import { actorUri } from '../domain/svc-uri.ts';
import type { AuthorityKey, GetAuthorityResponse, ResolveActorResponse } from '../gen/svc/v1/resolver_pb.ts';
import { LedgerTrustError } from './error.ts';
import type { Answer } from './shapes.ts';

/** What a resolver document says that verifying needs (spec: Resolver). */
export type ActorDocument = Pick<Answer<ResolveActorResponse>, 'actorId' | 'keys'>;
export type ActorDocumentKey = ActorDocument['keys'][number];

/** Where the public keys of actors come from. Whoever trusts it need not trust the service that the events are from. */
export interface KeySource {
  /**
   * The keys come from a resolver that the caller named, and not from the file or the answer that the events come from.
   */
  readonly isResolver?: boolean;
  /** null: there is no document at hand, so nothing can be said of the actor's signatures. */
  document(actorId: string): Promise<ActorDocument | null> | ActorDocument | null;
}

/**
 * Keys from resolver documents that were saved. Documents out of the file that is verified vouch for nobody; if these
 * were got on another way, say so with `trustedKeys`.
 */
export function keysFromDocuments(documents: Iterable<ActorDocument>): KeySource {
  const byActor = new Map([...documents].map((document) => [document.actorId, document]));
  return { document: (actorId) => byActor.get(actorId) ?? null };
}

/** Keys from a resolver, each actor asked for once. `client` may be that of another service than the events are from. */
export function keysFromResolver(client: {
  resolveActor(request: { readonly svcUri: string }): Promise<ActorDocument>;
}): KeySource {
  const asked = new Map<string, Promise<ActorDocument>>();
  const ask = async (actorId: string): Promise<ActorDocument> => {
    try {
      return await client.resolveActor({ svcUri: actorUri(actorId) });
    } catch (error) {
      // An actor that does not exist has no keys: that is an answer.
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

/** The keys of the authority as its trust anchor publishes them; none in development mode (phase 1). */
export type AuthorityKeys = readonly Answer<AuthorityKey>[];

/** The trust anchor document (spec: Authority trust anchor). */
export type AuthorityDocument = Pick<Answer<GetAuthorityResponse>, 'keys'>;

/** The keys of a trust anchor document; null where it publishes none. */
export function authorityKeysOf(anchor: AuthorityDocument): AuthorityKeys | null {
  return anchor.keys.length === 0 ? null : anchor.keys;
}

/** Reads public keys once. A key that no enrolment would have let pass verifies nothing: null. */
export function createKeyReader(): (publicKey: string) => KeyObject | null {
  const read = new Map<string, KeyObject | null>();
  return (publicKey) => {
    let key = read.get(publicKey);
    if (key === undefined) {
      key = verifyingKey(publicKey);
      read.set(publicKey, key);
    }
    return key;
  };
}
