/** HTTP status, gRPC code and error codes of the API, independent of the service's own table. */
const lines = `
400  3 invalid_json invalid_argument duplicate_key unsafe_number invalid_string too_deep
400  3 reserved_event_type reserved_field invalid_public_key
401 16 unauthenticated invalid_api_key invalid_actor_identity
401 16 signature_required invalid_signature unknown_signing_key signing_key_revoked
403  7 permission_denied access_expired environment_mismatch
404  5 not_found route_not_found
409  9 ledger_closed master_closed arl_required key_not_active
409  6 already_exists
409 10 idempotency_in_progress
413  8 payload_too_large
422  3 idempotency_key_reused
501 12 namespace_reserved`;

const statuses: ReadonlyMap<string, { readonly http: number; readonly grpc: number }> = new Map(
  lines
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [http, grpc, ...codes] = line.split(/ +/);
      return codes.map((code) => [code, { http: Number(http), grpc: Number(grpc) }] as const);
    }),
);

export function httpStatusOf(code: string): number | undefined {
  return statuses.get(code)?.http;
}

export function grpcStatusOf(code: string): number | undefined {
  return statuses.get(code)?.grpc;
}
