import type { GetAuthorityResponse, ResolveActorResponse } from '../../gen/svc/v1/resolver_pb.ts';
import { ask, type Caller } from '../call/call.ts';
import type { ReadEvent } from '../event.ts';
import { type ActorDocument, type AuthorityKeys, authorityKeysOf, keysFromResolver } from '../verify/key-source.ts';
import { createSignatureCheck, type SignatureCheck } from '../verify/verify-signature.ts';
import type { FollowOptions } from './follow-api.ts';

/** How long documents of the resolver are used, ms: as long as a node trusts a key after each look at it. */
const DOCUMENTS_MAX_MS = 10_000;

/**
 * Checks signatures while keys are enrolled, rotated and revoked. Keys of the service are looked up again every ten
 * seconds, and at once if an event does not verify under those at hand.
 */
export function createLiveSignatureCheck(
  caller: Caller,
  options: Pick<FollowOptions, 'keys' | 'authorityKeys'>,
  signal: AbortSignal,
  monotonicMs: () => number,
): SignatureCheck {
  const resolveActor = (request: { readonly svcUri: string }): Promise<ActorDocument> =>
    ask<ResolveActorResponse>(caller, 'resolveActor', request, { signal });
  const anchorKeys = async (): Promise<AuthorityKeys | null> =>
    authorityKeysOf(await ask<GetAuthorityResponse>(caller, 'getAuthority', {}, { signal }));

  const load = async (): Promise<{ readonly check: SignatureCheck; readonly loadedMs: number }> => {
    const loadedMs = monotonicMs();
    const keys = options.keys ?? keysFromResolver({ resolveActor });
    const authorityKeys = options.authorityKeys === undefined ? await anchorKeys() : options.authorityKeys;
    return { check: createSignatureCheck(keys, authorityKeys), loadedMs };
  };
  let loaded: Awaited<ReturnType<typeof load>> | null = null;
  const isFixed = options.keys !== undefined && options.authorityKeys !== undefined;

  return async (read: ReadEvent) => {
    if (loaded === null || (!isFixed && monotonicMs() - loaded.loadedMs >= DOCUMENTS_MAX_MS)) loaded = await load();
    const findings = await loaded.check(read);
    if (isFixed || !findings.some(({ outcome }) => outcome === 'bad')) return findings;
    loaded = await load();
    return loaded.check(read);
  };
}
