/**
 * What an error says about its call, and whether the call may be sent again:
 * - `refused`: decided in the knowledge of what earlier attempts wrote. Sent again, the call is refused again.
 * - `refused_unchecked`: refused before anything was looked up. Says nothing about earlier attempts.
 * - `not_written`: this attempt wrote nothing. Any call may be sent again.
 * - `in_progress`: an earlier attempt is still running. Any call may be sent again.
 * - `maybe_written`: safe to send again with the same idempotency key, or if the call is a read.
 * - `fault`: the same, but the error may well come again. Clients leave this retry to their users.
 */
export type RetryRule = 'refused' | 'refused_unchecked' | 'not_written' | 'in_progress' | 'maybe_written' | 'fault';

interface ErrorRow {
  readonly retry: RetryRule;
  /** Status of REST. */
  readonly http: number;
  /** Status of gRPC and Connect. */
  readonly grpc: string;
  /** To a caller; Markdown. */
  readonly meaning: string;
  /** What a caller does about it; Markdown, with links from docs/. */
  readonly action: string;
}

const invalid = { retry: 'refused', http: 400, grpc: 'InvalidArgument' } as const;
const unauthenticated = { retry: 'refused_unchecked', http: 401, grpc: 'Unauthenticated' } as const;
const denied = { retry: 'refused', http: 403, grpc: 'PermissionDenied' } as const;
const notFound = { retry: 'refused', http: 404, grpc: 'NotFound' } as const;
const conflict = { retry: 'refused', http: 409, grpc: 'FailedPrecondition' } as const;
const unavailable = { retry: 'not_written', http: 503, grpc: 'Unavailable' } as const;

/** All codes. All transports answer by this table, and docs/errors.md and the OpenAPI document show it. */
export const errorTable = {
  invalid_json: { ...invalid, meaning: 'the body is not JSON', action: 'send JSON (RFC 8259) in UTF-8' },
  invalid_argument: {
    ...invalid,
    meaning: 'a field or parameter is missing, unknown or not what it must be; `details` names it',
    action: 'correct the field that `details.field`, or the header that `details.header`, names',
  },
  duplicate_key: { ...invalid, meaning: 'an object has the same key twice', action: 'send each key once' },
  unsafe_number: {
    ...invalid,
    meaning: 'a number that canonical JSON would change',
    action: 'send the number as a string',
  },
  invalid_string: { ...invalid, meaning: 'a string with half of a surrogate pair', action: 'send whole characters' },
  too_deep: {
    ...invalid,
    meaning: 'JSON nested beyond 64 levels from the root of the body; text in a field stands one level deep',
    action: 'nest less',
  },
  reserved_event_type: {
    ...invalid,
    meaning: 'an event type that only the service writes',
    action: 'choose another event type',
  },
  reserved_field: {
    ...invalid,
    meaning: 'a payload field that the server injects, with another value',
    action: 'leave the field out, or send the value in `details.expected`',
  },
  invalid_public_key: {
    ...invalid,
    meaning: 'not an Ed25519 public key, or a weak one',
    action: 'send the 32 bytes of an Ed25519 public key in standard base64',
  },
  unauthenticated: {
    ...unauthenticated,
    meaning: 'no credential was sent',
    action: 'send `Authorization: Bearer`, or the headers of an entity',
  },
  invalid_api_key: {
    ...unauthenticated,
    meaning: 'the API key is unknown or revoked',
    action: 'check the key for typing errors; make a new one if it was revoked',
  },
  invalid_actor_identity: {
    ...unauthenticated,
    meaning: 'the identity headers do not name an entity of that type',
    action: 'send the actor id of an onboarded entity and its stored type',
  },
  signature_required: {
    ...unauthenticated,
    meaning: 'the actor has keys and must sign',
    action: 'sign the call: [signing.md](signing.md)',
  },
  invalid_signature: {
    ...unauthenticated,
    meaning: 'the signature does not verify; `details` says against what',
    action:
      'compare what you signed with `details`, which shows what was expected only to a caller that is known: [signing.md](signing.md)',
  },
  unknown_signing_key: {
    ...unauthenticated,
    meaning: 'the named key is none of the actor',
    action: 'enrol the key first, or name another one in X-Signing-Key-ID',
  },
  signing_key_revoked: { ...unauthenticated, meaning: 'the named key is revoked', action: 'sign with another key' },
  permission_denied: {
    ...denied,
    meaning: 'the caller may not do this',
    action: 'ask a party for a grant, or a grant that may write',
  },
  access_expired: { ...denied, meaning: 'the grant that allowed this has expired', action: 'ask for a new grant' },
  environment_mismatch: {
    ...denied,
    meaning: 'sandbox and production do not mix',
    action: 'use actors and keys of one environment',
  },
  not_found: {
    ...notFound,
    meaning: 'there is no such object, or the caller may not see it',
    action: 'check the id; ask a party for a grant',
  },
  route_not_found: {
    ...notFound,
    meaning: 'there is no such path',
    action: 'check the path: calls of the API over REST begin with `/v1`',
  },
  method_not_allowed: {
    retry: 'refused',
    http: 405,
    grpc: 'Unimplemented',
    meaning: 'the path does not take this method; `Allow` says which',
    action: 'use a method that `Allow` lists',
  },
  ledger_closed: {
    ...conflict,
    meaning: 'the ledger is closed',
    action: 'write to another ledger: closing is for good',
  },
  master_closed: {
    ...conflict,
    meaning: 'the master is closed',
    action: 'write to another master: closing is for good',
  },
  already_exists: {
    retry: 'refused',
    http: 409,
    grpc: 'AlreadyExists',
    meaning: 'it exists already',
    action: 'use what exists',
  },
  arl_required: {
    ...conflict,
    meaning: 'the entity needs an asset root ledger first',
    action: 'open the root ledger of the entity first (`POST /v1/entities/root-ledger`), or set its gate off',
  },
  idempotency_in_progress: {
    retry: 'in_progress',
    http: 409,
    grpc: 'Aborted',
    meaning: 'the first call with this idempotency key is still running',
    action: 'send the same call again after `Retry-After`',
  },
  key_not_active: { ...conflict, meaning: 'the signing key is not active', action: 'name an active key' },
  payload_too_large: {
    retry: 'refused',
    http: 413,
    grpc: 'ResourceExhausted',
    meaning:
      'a body beyond 1 MiB (64 KiB without a credential) or 132,096 JSON values, a payload beyond 256 KiB, an event with its signed payload beyond 572 KiB, metadata beyond 16 KiB, permissions beyond 4 KiB, more than 512 fields over gRPC and Connect, or 28,000 JSON values and escapes without a credential',
    action: 'send less; `details` has the limit',
  },
  unsupported_media_type: {
    retry: 'refused',
    http: 415,
    grpc: 'InvalidArgument',
    meaning: 'the body is not `application/json`, or is compressed',
    action: 'send `Content-Type: application/json`, not compressed',
  },
  idempotency_key_reused: {
    retry: 'refused',
    http: 422,
    grpc: 'InvalidArgument',
    meaning: 'the idempotency key was used for another call',
    action: 'send a new call with a new key: [idempotency.md](idempotency.md)',
  },
  rate_limited: {
    retry: 'not_written',
    http: 429,
    grpc: 'ResourceExhausted',
    meaning: 'too many calls; `Retry-After` says when to go on',
    action: 'wait for `Retry-After`, then send the same call again',
  },
  namespace_reserved: {
    retry: 'refused',
    http: 501,
    grpc: 'Unimplemented',
    meaning: 'the namespace is reserved for a later version',
    action: 'resolve `svc:actor:` only',
  },
  unavailable: {
    ...unavailable,
    meaning: 'nothing was written; retry',
    action: 'send the same call again; another node may answer',
  },
  overloaded: {
    ...unavailable,
    meaning: 'nothing was written; retry a little later',
    action: 'send the same call again, and fewer at once',
  },
  outcome_unknown: {
    retry: 'maybe_written',
    http: 504,
    grpc: 'DeadlineExceeded',
    meaning: 'may or may not have been written; retry with the same Idempotency-Key',
    action: 'send the same call again with the same Idempotency-Key',
  },
  internal: {
    retry: 'fault',
    http: 500,
    grpc: 'Internal',
    meaning: 'a fault of the service',
    action: 'report it with the request id',
  },
} as const satisfies { readonly [code: string]: ErrorRow };
