import { Code } from '@connectrpc/connect';
import type { ErrorCode } from '../../domain/errors.ts';

/** gRPC and Connect share their numbers. */
interface TransportStatus {
  readonly http: number;
  readonly grpc: number;
}

const statuses: { readonly [code in ErrorCode]: TransportStatus } = {
  invalid_json: { http: 400, grpc: Code.InvalidArgument },
  invalid_argument: { http: 400, grpc: Code.InvalidArgument },
  duplicate_key: { http: 400, grpc: Code.InvalidArgument },
  unsafe_number: { http: 400, grpc: Code.InvalidArgument },
  invalid_string: { http: 400, grpc: Code.InvalidArgument },
  too_deep: { http: 400, grpc: Code.InvalidArgument },
  reserved_event_type: { http: 400, grpc: Code.InvalidArgument },
  reserved_field: { http: 400, grpc: Code.InvalidArgument },
  invalid_public_key: { http: 400, grpc: Code.InvalidArgument },
  unauthenticated: { http: 401, grpc: Code.Unauthenticated },
  invalid_api_key: { http: 401, grpc: Code.Unauthenticated },
  invalid_actor_identity: { http: 401, grpc: Code.Unauthenticated },
  signature_required: { http: 401, grpc: Code.Unauthenticated },
  invalid_signature: { http: 401, grpc: Code.Unauthenticated },
  unknown_signing_key: { http: 401, grpc: Code.Unauthenticated },
  signing_key_revoked: { http: 401, grpc: Code.Unauthenticated },
  permission_denied: { http: 403, grpc: Code.PermissionDenied },
  access_expired: { http: 403, grpc: Code.PermissionDenied },
  environment_mismatch: { http: 403, grpc: Code.PermissionDenied },
  not_found: { http: 404, grpc: Code.NotFound },
  route_not_found: { http: 404, grpc: Code.NotFound },
  method_not_allowed: { http: 405, grpc: Code.Unimplemented },
  ledger_closed: { http: 409, grpc: Code.FailedPrecondition },
  master_closed: { http: 409, grpc: Code.FailedPrecondition },
  already_exists: { http: 409, grpc: Code.AlreadyExists },
  arl_required: { http: 409, grpc: Code.FailedPrecondition },
  idempotency_in_progress: { http: 409, grpc: Code.Aborted },
  key_not_active: { http: 409, grpc: Code.FailedPrecondition },
  payload_too_large: { http: 413, grpc: Code.ResourceExhausted },
  unsupported_media_type: { http: 415, grpc: Code.InvalidArgument },
  idempotency_key_reused: { http: 422, grpc: Code.InvalidArgument },
  rate_limited: { http: 429, grpc: Code.ResourceExhausted },
  namespace_reserved: { http: 501, grpc: Code.Unimplemented },
  unavailable: { http: 503, grpc: Code.Unavailable },
  overloaded: { http: 503, grpc: Code.Unavailable },
  outcome_unknown: { http: 504, grpc: Code.DeadlineExceeded },
  internal: { http: 500, grpc: Code.Internal },
};

export function statusOf(code: ErrorCode): TransportStatus {
  return statuses[code];
}
