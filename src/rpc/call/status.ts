import type { ErrorCode } from '../../domain/errors.ts';

/** The status of an error code in each transport. gRPC and Connect share their numbers. */
interface TransportStatus {
  readonly http: number;
  /** https://grpc.io/docs/guides/status-codes/ */
  readonly grpc: number;
}

const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

const statuses: { readonly [code in ErrorCode]: TransportStatus } = {
  invalid_json: { http: 400, grpc: INVALID_ARGUMENT },
  invalid_argument: { http: 400, grpc: INVALID_ARGUMENT },
  duplicate_key: { http: 400, grpc: INVALID_ARGUMENT },
  unsafe_number: { http: 400, grpc: INVALID_ARGUMENT },
  invalid_string: { http: 400, grpc: INVALID_ARGUMENT },
  too_deep: { http: 400, grpc: INVALID_ARGUMENT },
  reserved_event_type: { http: 400, grpc: INVALID_ARGUMENT },
  reserved_field: { http: 400, grpc: INVALID_ARGUMENT },
  invalid_public_key: { http: 400, grpc: INVALID_ARGUMENT },
  unauthenticated: { http: 401, grpc: UNAUTHENTICATED },
  invalid_api_key: { http: 401, grpc: UNAUTHENTICATED },
  invalid_actor_identity: { http: 401, grpc: UNAUTHENTICATED },
  signature_required: { http: 401, grpc: UNAUTHENTICATED },
  invalid_signature: { http: 401, grpc: UNAUTHENTICATED },
  unknown_signing_key: { http: 401, grpc: UNAUTHENTICATED },
  signing_key_revoked: { http: 401, grpc: UNAUTHENTICATED },
  permission_denied: { http: 403, grpc: PERMISSION_DENIED },
  access_expired: { http: 403, grpc: PERMISSION_DENIED },
  environment_mismatch: { http: 403, grpc: PERMISSION_DENIED },
  not_found: { http: 404, grpc: NOT_FOUND },
  route_not_found: { http: 404, grpc: NOT_FOUND },
  method_not_allowed: { http: 405, grpc: UNIMPLEMENTED },
  ledger_closed: { http: 409, grpc: FAILED_PRECONDITION },
  master_closed: { http: 409, grpc: FAILED_PRECONDITION },
  already_exists: { http: 409, grpc: ALREADY_EXISTS },
  arl_required: { http: 409, grpc: FAILED_PRECONDITION },
  idempotency_in_progress: { http: 409, grpc: ABORTED },
  key_not_active: { http: 409, grpc: FAILED_PRECONDITION },
  payload_too_large: { http: 413, grpc: RESOURCE_EXHAUSTED },
  unsupported_media_type: { http: 415, grpc: INVALID_ARGUMENT },
  idempotency_key_reused: { http: 422, grpc: INVALID_ARGUMENT },
  rate_limited: { http: 429, grpc: RESOURCE_EXHAUSTED },
  namespace_reserved: { http: 501, grpc: UNIMPLEMENTED },
  unavailable: { http: 503, grpc: UNAVAILABLE },
  overloaded: { http: 503, grpc: UNAVAILABLE },
  outcome_unknown: { http: 504, grpc: DEADLINE_EXCEEDED },
  internal: { http: 500, grpc: INTERNAL },
};

export function statusOf(code: ErrorCode): TransportStatus {
  return statuses[code];
}
