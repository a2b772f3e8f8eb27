import { notFound, refusedValue } from '../../domain/errors.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { actorUri, namespaceReserved, parseSvcUri } from '../../domain/values/svc-uri.ts';
import type { GetAuthorityRequest, ResolveActorRequest } from '../../gen/svc/v1/resolver_pb.ts';
import type { Authority } from '../authority/authority.ts';
import { authorityFingerprint } from '../authority/key-list.ts';
import type { Call } from '../calls/call.ts';
import type { LogIdentity } from '../log-identity/log-identity.ts';
import type { LogKeyRecord } from '../log-identity/log-record.ts';
import type { ActorRecord } from './actor-record.ts';
import { keyMessage } from './actors.ts';
import type { Identities } from './identities.ts';

/**
 * The public documents that third parties need to verify: actors with their keys, the authority's keys and the log's.
 */
export function resolverService(
  identities: Identities,
  authority: Authority,
  logIdentity: LogIdentity,
  production: boolean,
) {
  return {
    resolveActor: async (request: ResolveActorRequest, call: Call) => {
      const uri = parseSvcUri(request.svcUri);
      if (uri.kind === 'reserved') throw namespaceReserved(uri.namespace);
      if (uri.kind === 'invalid')
        throw refusedValue('svc_uri', request.svcUri, 'an actor URI, svc:actor:<uuid>, in lower case');
      const actor = await identities.load(uri.actorId, call.walk);
      if (actor === null) throw notFound('actor');
      return cached(
        call,
        identities.answer(call.walk, actor, 'document', () => documentOf(actor)),
      );
    },

    /**
     * In development mode (phase 1) the authority is a key that the node made for itself, so no key is named as the
     * authority's (`public_key`). `keys` still holds it, so that its seals can be verified.
     */
    getAuthority: async (_request: GetAuthorityRequest, call: Call) => {
      const current = authority.keys.at(-1);
      const isEnrolled = production && current !== undefined;
      return cached(call, {
        id: 'svc:authority',
        algorithm: 'Ed25519',
        ...(isEnrolled ? { publicKey: current.publicKey, fingerprint: authorityFingerprint(current) } : {}),
        kidNamespace: 'svc:authority#key-<seq>',
        phase: isEnrolled ? '2' : '1',
        keys: authority.keys.map((key) => ({
          kid: key.kid,
          algorithm: 'Ed25519',
          publicKey: key.publicKey,
          fingerprint: authorityFingerprint(key),
          validFrom: key.validFrom,
          ...(key.validTo === null ? {} : { validTo: key.validTo }),
        })),
        log: logAnchor(logIdentity, isEnrolled),
      });
    },
  };
}

function documentOf(actor: ActorRecord) {
  const preferred = actor.keys.find((key) => key.preferred);
  return {
    id: actorUri(actor.actorId),
    actorId: actor.actorId,
    role: actor.role,
    status: 'ACTIVE',
    keys: actor.keys.map(keyMessage),
    ...(preferred === undefined ? {} : { preferredSigning: preferred.kid }),
    authorityAttestations: [],
    createdAt: actor.createdAt,
  };
}

function logAnchor({ serviceName, keys, previous }: LogIdentity, isEnrolled: boolean) {
  const messages = (listed: readonly LogKeyRecord[]) =>
    listed.map(({ publicKey, validFrom, validTo, endorsement }) => ({
      publicKey,
      validFrom,
      ...(validTo === null ? {} : { validTo }),
      ...(isEnrolled ? { endorsement } : {}),
    }));
  return {
    origin: serviceName,
    keys: messages(keys),
    previous: previous.map((ended) => ({ ...ended, keys: messages(ended.keys) })),
  };
}

/** Those of documents that are kept for many calls are made once. */
const etags = new WeakMap<object, string>();

/** Lets clients cache a public document for a minute, with an ETag of its content. */
function cached<T extends object>(call: Call, document: T): T {
  const etag = etags.get(document) ?? `"${sha256Hex(JSON.stringify(document)).slice(0, 32)}"`;
  etags.set(document, etag);
  call.setHeader('cache-control', 'public, max-age=60');
  call.setHeader('etag', etag);
  return document;
}
