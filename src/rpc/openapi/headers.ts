import type { DescMethod } from '@bufbuild/protobuf';
import { actorTypes } from '../../domain/event/event.ts';
import { EngagementService } from '../../gen/svc/v1/engagements_pb.ts';
import { EntityService } from '../../gen/svc/v1/entities_pb.ts';
import { LedgerService } from '../../gen/svc/v1/ledgers_pb.ts';
import { MasterService } from '../../gen/svc/v1/masters_pb.ts';
import { Auth } from '../../gen/svc/v1/options_pb.ts';
import { ResolverService } from '../../gen/svc/v1/resolver_pb.ts';
import { idempotencyKeyForm } from '../../service/idempotency/command-key.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import type { JsonObject } from './format.ts';

/** `components.securitySchemes`. */
export const securitySchemes: JsonObject = {
  ApiKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `Authorization: Bearer svc_sk_…`.',
  },
  EntityActorId: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ACTOR-ID',
    description:
      'The calling entity’s actor. An entity that ever had a key signs each call, and in production mode every entity does.',
  },
  EntityActorType: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ACTOR-TYPE',
    description: 'The stored type of the calling entity, such as `device`.',
  },
};

/** Returns alternatives, each with the schemes that go together. */
export function securityOf(route: RestRoute): JsonObject[] {
  const entity = { EntityActorId: [], EntityActorType: [] };
  switch (route.rule.auth) {
    case Auth.NONE:
      return [];
    case Auth.BEARER:
      return [{ ApiKey: [] }];
    case Auth.BEARER_OR_ENTITY:
      return [{ ApiKey: [] }, entity];
    case Auth.ENTITY:
      return [entity, { ApiKey: [] }];
    default:
      throw new Error(`${route.template} names no credential`);
  }
}

/** `components.parameters`: the request headers. */
export const headerParameters: JsonObject = {
  // No pattern: a call is not refused for it.
  RequestId: header(
    'X-Request-Id',
    'Names the call in logs and audits: 1 to 128 characters of `A-Za-z0-9._-`. The server makes one in place of any other.',
    {},
  ),
  IdempotencyKey: header(
    'Idempotency-Key',
    'The first answer under this key is stored for 24 hours and given again to the same call; nothing is done twice.',
    { pattern: idempotencyKeyForm.source },
  ),
  SigningKeyId: header(
    'X-Signing-Key-ID',
    'Name of the signing key, `svc:actor:<uuid>#key-<n>`; the preferred key is tried if left out.',
    // No pattern here and of the next three: they are looked at only where a signature is verified. A call that needs
    // none is not refused for them, nor is the replay of an answer.
    {},
  ),
  ActorSig: header(
    'X-Actor-Sig',
    'Base64 Ed25519 signature of the digest: SHA-256 of the event type, a zero byte, the ledger id, a zero byte and the canonical JSON of what is signed. An actor that ever had a key must sign.',
    {},
  ),
  ActorDigest: header(
    'X-Actor-Digest',
    'The digest that you signed, 64 hex digits. The details of `invalid_signature` compare it with the expected one.',
    {},
  ),
  ActorCanonical: header(
    'X-Actor-Canonical',
    'Base64 of the canonical JSON that you signed, at most 8,192 characters. The details of `invalid_signature` show where it differs.',
    {},
  ),
  Timestamp: header(
    'X-Timestamp',
    'RFC 3339 time of an ENTITY_REQUEST signature, at most 300 seconds off: for signed calls of entities that have no signing input of their own.',
    // Text: what is signed is the header as it is sent, and a generator would write a date anew. No pattern: beside an
    // API key it is not looked at.
    {},
  ),
  ActorType: header('X-ACTOR-TYPE', 'With an API key: the `actor_type` of the events; `service` if left out.', {
    enum: [...actorTypes],
  }),
  DeliveryChain: header(
    'X-Delivery-Chain',
    'JSON array of at most 16 `{actor_id, actor_type, role}`, stored in the payload as `delivery_chain`.',
    {},
  ),
  Strict: header('X-Strict', '`1`: a query parameter that this call does not have is refused, not ignored.', {
    enum: ['0', '1'],
  }),
  LastEventId: header(
    'Last-Event-ID',
    'The `id` of the last event that was received: the stream goes on behind it, whatever the query says.',
    {},
  ),
  IfNoneMatch: header('If-None-Match', 'An `ETag` of this document: the answer is 304 while it stands.', {}),
};

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: 'header', required: false, description, schema: { type: 'string', ...schema } };
}

/** Methods that write only events of the service itself, whose `actor_type` is always `service`. */
const sealedAlone: ReadonlySet<DescMethod> = new Set([
  LedgerService.method.closeLedger,
  EngagementService.method.closeEngagement,
  EntityService.method.closeRootLedger,
]);

/** Every call with a credential that may change something. */
export function takesIdempotencyKey({ rule, httpMethod }: RestRoute): boolean {
  return rule.auth !== Auth.NONE && httpMethod !== 'GET';
}

export function headersOf(route: RestRoute): JsonObject[] {
  const { rule, method } = route;
  const entityToo = rule.auth === Auth.BEARER_OR_ENTITY || rule.auth === Auth.ENTITY;
  const signable = rule.signed || entityToo || rule.writesLedger;
  const names = ['RequestId', 'Strict'];
  if (takesIdempotencyKey(route)) names.push('IdempotencyKey');
  if (signable) names.push('SigningKeyId', 'ActorSig', 'ActorDigest', 'ActorCanonical');
  if (entityToo) names.push('Timestamp');
  if (rule.writesLedger && !sealedAlone.has(method)) names.push('ActorType');
  if (method === MasterService.method.appendEvent) names.push('DeliveryChain');
  if (rule.live) names.push('LastEventId');
  if (method.parent === ResolverService) names.push('IfNoneMatch');
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

/** `components.headers`: the headers of answers. */
export const answerHeaders: JsonObject = {
  'X-Request-Id': { description: "The call's request id, on every answer.", schema: { type: 'string' } },
  'X-Ignored-Parameters': {
    description:
      'Names of query parameters that this call does not have, percent-encoded, separated by commas; only if there are any.',
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description: '`true` where the answer is the first one again.',
    schema: { type: 'string', enum: ['true'] },
  },
  ETag: { description: 'Changes with the document.', schema: { type: 'string' } },
  'Cache-Control': { description: 'How long the document may be kept.', schema: { type: 'string' } },
};

export function answerHeadersOf(route: RestRoute): JsonObject {
  const names = ['X-Request-Id', 'X-Ignored-Parameters'];
  if (takesIdempotencyKey(route)) names.push('Idempotent-Replayed');
  if (route.method.parent === ResolverService) names.push('ETag', 'Cache-Control');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
