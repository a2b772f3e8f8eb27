import { type ErrorCode, errorCodes } from '../../domain/errors.ts';
import { Auth } from '../../gen/svc/v1/options_pb.ts';
import { ResolverService } from '../../gen/svc/v1/resolver_pb.ts';
import { statusOf } from '../call/status.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import type { JsonObject } from './format.ts';
import { takesIdempotencyKey } from './headers.ts';

/** What each code means to a caller. */
export const errorMeanings: { readonly [code in ErrorCode]: string } = {
  invalid_json: 'the body is not JSON',
  invalid_argument: 'a field or parameter is missing, unknown or not what it must be; `details` names it',
  duplicate_key: 'an object has the same key twice',
  unsafe_number: 'a number that canonical JSON would change',
  invalid_string: 'a string with half of a surrogate pair',
  too_deep: 'JSON nested beyond 64 levels from the root of the body; text in a field stands one level deep',
  reserved_event_type: 'a reserved event type, such as one that only the service writes',
  reserved_field: 'a payload field that the server injects, with another value',
  invalid_public_key: 'not an Ed25519 public key, or a weak one',
  unauthenticated: 'no credential was sent',
  invalid_api_key: 'the API key is unknown or revoked',
  invalid_actor_identity: 'the identity headers do not name an entity of that type',
  signature_required: 'the actor has keys and must sign',
  invalid_signature: 'the signature does not verify; `details` says against what',
  unknown_signing_key: 'the named key is none of the actor',
  signing_key_revoked: 'the named key is revoked',
  permission_denied: 'the caller may not do this',
  access_expired: 'the grant that allowed this has expired',
  environment_mismatch: 'sandbox and production do not mix',
  not_found: 'there is no such object, or the caller may not see it',
  route_not_found: 'there is no such path',
  method_not_allowed: 'the path does not take this method; `Allow` says which',
  ledger_closed: 'the ledger is closed',
  master_closed: 'the master is closed',
  already_exists: 'it exists already',
  arl_required: 'the entity needs an asset root ledger first',
  idempotency_in_progress: 'the first call with this idempotency key is still running',
  key_not_active: 'the signing key is not active',
  payload_too_large:
    'a body beyond 1 MiB (64 KiB without a credential) or 132,096 JSON values, a payload beyond 256 KiB, an event with its signed payload beyond 572 KiB, metadata beyond 16 KiB, permissions beyond 4 KiB, more than 512 fields over gRPC and Connect, or 28,000 JSON values and escapes without a credential',
  unsupported_media_type: 'the body is not `application/json`, or is compressed',
  idempotency_key_reused: 'the idempotency key was used for another call',
  rate_limited: 'too many calls; `Retry-After` says when to go on',
  namespace_reserved: 'the namespace is reserved for a later version',
  unavailable: 'nothing was written; retry',
  overloaded: 'nothing was written; retry a little later',
  outcome_unknown: 'may or may not have been written; retry with the same Idempotency-Key',
  internal: 'a fault of the service',
};

/** The HTTP statuses of the errors of a route, in order. */
export function errorStatuses(route: RestRoute): readonly number[] {
  const { method, rule, httpMethod } = route;
  const needsCredential = rule.auth !== Auth.NONE;
  const writes = httpMethod === 'POST' || httpMethod === 'PATCH';
  // Each call refuses unknown parameters if it is asked to (X-Strict).
  const statuses = new Set([400, 429, 500, 503]);
  if (method.input.fields.length > 0) statuses.add(404);
  if (needsCredential) statuses.add(401).add(403).add(404);
  const keyed = takesIdempotencyKey(route);
  if (writes || keyed) statuses.add(409).add(504);
  if (writes) statuses.add(413).add(415);
  if (keyed) statuses.add(422);
  if (method === ResolverService.method.resolveActor) statuses.add(501);
  return [...statuses].sort();
}

/** `components.responses`: one answer for each status of errors. */
export function errorResponses(): JsonObject {
  const statuses = [...new Set(errorCodes.map((code) => statusOf(code).http))].sort();
  return Object.fromEntries(statuses.map((status) => [`Error${status}`, errorResponse(status)]));
}

const retryAfter: JsonObject = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
};

const rateHeaders: JsonObject = {
  ...retryAfter,
  RateLimit: {
    description: 'What is left of the limit, and in how many seconds there is more.',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description: 'The limit: calls at once, and the seconds they count for.',
    schema: { type: 'string' },
  },
};

function errorResponse(status: number): JsonObject {
  const codes = errorCodes.filter((code) => statusOf(code).http === status);
  const code = codes[0] ?? 'internal';
  return {
    description: codes.map((name) => `\`${name}\`: ${errorMeanings[name]}.`).join('\n\n'),
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
      'X-Ignored-Parameters': { $ref: '#/components/headers/X-Ignored-Parameters' },
      ...(status === 429 ? rateHeaders : {}),
      ...(status === 503 ? retryAfter : {}),
      ...(status === 405 ? { Allow: { description: 'Methods of the path.', schema: { type: 'string' } } } : {}),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/ErrorEnvelope' },
        example: { error: { code, message: `${capitalized(errorMeanings[code])}.`, request_id: 'req-7', details: {} } },
      },
    },
  };
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `components.schemas` of errors. Languages have an `Error` of their own, so the names are others. */
export const errorSchemas: { readonly [name: string]: JsonObject } = {
  ErrorEnvelope: {
    type: 'object',
    description: 'The envelope of every error.',
    required: ['error'],
    properties: { error: { description: 'The error.', $ref: '#/components/schemas/ErrorBody' } },
  },
  ErrorBody: {
    type: 'object',
    description: 'What went wrong.',
    required: ['code', 'message', 'request_id'],
    properties: {
      code: { type: 'string', description: 'What went wrong, for programs.', enum: errorCodes },
      message: { type: 'string', description: 'One sentence that a person can act on.' },
      request_id: { type: 'string', description: "The call's request id." },
      details: {
        type: 'object',
        description:
          'What helps to mend the call: the field, the limit, what was expected. Left out where nothing does.',
      },
      cut: {
        type: 'array',
        description: 'What was too long to be shown whole: names of details, and `message`. Left out if nothing was.',
        items: { type: 'string' },
      },
    },
  },
};
