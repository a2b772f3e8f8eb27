import { codeToHttpStatus, codeToString } from '@connectrpc/connect/protocol-connect';
import { type ErrorCode, errorCodes, type RetryRule, retryRuleOf } from '../src/domain/errors.ts';
import { statusOf } from '../src/rpc/call/status.ts';
import { errorMeanings } from '../src/rpc/openapi/errors.ts';

/** The made parts of docs/errors.md. */

/** What a caller does about each code. */
const actions: { readonly [code in ErrorCode]: string } = {
  invalid_json: 'send JSON (RFC 8259) in UTF-8',
  invalid_argument: 'correct the field that `details.field`, or the header that `details.header`, names',
  duplicate_key: 'send each key once',
  unsafe_number: 'send the number as a string',
  invalid_string: 'send whole characters',
  too_deep: 'nest less',
  reserved_event_type: 'choose another event type',
  reserved_field: 'leave the field out, or send the value in `details.expected`',
  invalid_public_key: 'send the 32 bytes of an Ed25519 public key in standard base64',
  unauthenticated: 'send `Authorization: Bearer`, or the headers of an entity',
  invalid_api_key: 'check the key for typing errors; make a new one if it was revoked',
  invalid_actor_identity: 'send the actor id of an onboarded entity and its stored type',
  signature_required: 'sign the call: [signing.md](signing.md)',
  invalid_signature:
    'compare what you signed with `details`, which shows what was expected only to a caller that is known: [signing.md](signing.md)',
  unknown_signing_key: 'enrol the key first, or name another one in X-Signing-Key-ID',
  signing_key_revoked: 'sign with another key',
  permission_denied: 'ask a party for a grant, or a grant that may write',
  access_expired: 'ask for a new grant',
  environment_mismatch: 'use actors and keys of one environment',
  not_found: 'check the id; ask a party for a grant',
  route_not_found: 'check the path: calls of the API over REST begin with `/v1`',
  method_not_allowed: 'use a method that `Allow` lists',
  ledger_closed: 'write to another ledger: closing is for good',
  master_closed: 'write to another master: closing is for good',
  already_exists: 'use what exists',
  arl_required: 'open the root ledger of the entity first (`POST /v1/entities/root-ledger`), or set its gate off',
  idempotency_in_progress: 'send the same call again after `Retry-After`',
  key_not_active: 'name an active key',
  payload_too_large: 'send less; `details` has the limit',
  unsupported_media_type: 'send `Content-Type: application/json`, not compressed',
  idempotency_key_reused: 'send a new call with a new key: [idempotency.md](idempotency.md)',
  rate_limited: 'wait for `Retry-After`, then send the same call again',
  namespace_reserved: 'resolve `svc:actor:` only',
  unavailable: 'send the same call again; another node may answer',
  overloaded: 'send the same call again, and fewer at once',
  outcome_unknown: 'send the same call again with the same Idempotency-Key',
  internal: 'report it with the request id',
};

const retries: { readonly [rule in RetryRule]: string } = {
  refused: 'no',
  refused_unchecked: 'no; says nothing about earlier attempts',
  not_written: 'yes, any call',
  in_progress: 'yes, any call',
  maybe_written: 'with the same Idempotency-Key, or a read',
  fault: 'with the same Idempotency-Key, or a read; once or twice',
};

/** Markdown: one row a code, in the order of the code's own table. */
export function errorCodesTable(): string {
  const rows = errorCodes.map((code) => {
    const { http, grpc } = statusOf(code);
    const connect = codeToString(grpc);
    const cells = [
      `\`${code}\``,
      http,
      `${connect.toUpperCase()} (${grpc})`,
      `\`${connect}\`, ${codeToHttpStatus(grpc)}`,
      errorMeanings[code],
      actions[code],
      retries[retryRuleOf(code)],
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| code | REST | gRPC and gRPC-Web | Connect, its HTTP status | meaning | what to do | send it again? |',
    '|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}
