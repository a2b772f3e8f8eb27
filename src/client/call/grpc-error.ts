import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Metadata, ServiceError } from '@grpc/grpc-js';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import { answeredError, cutNames, LedgerTrustError } from '../error.ts';
import { retryAfterOf } from './rest-error.ts';

/** Of grpc-js, which is loaded with the first call. */
const statuses = {
  CANCELLED: 1,
  UNKNOWN: 2,
  DEADLINE_EXCEEDED: 4,
  RESOURCE_EXHAUSTED: 8,
  INTERNAL: 13,
  UNAVAILABLE: 14,
};

/** The service's error from the trailers (google.rpc.ErrorInfo of domain `svc`), else what grpc-js reports. */
export function grpcError(error: ServiceError): LedgerTrustError {
  const metadata = error.metadata as Metadata | undefined;
  const requestId = textOf(metadata, 'x-request-id');
  const retryAfterMs = retryAfterOf(textOf(metadata, 'retry-after'));
  const facts = { grpcStatus: error.code, requestId, retryAfterMs };
  const info = infoOf(metadata);
  if (info !== null) {
    return answeredError(info.reason, error.details, {
      ...facts,
      details: detailsOf(info.metadata.details),
      cut: cutNames(info.metadata.cut),
      requestId: info.metadata.request_id ?? requestId,
    });
  }
  switch (error.code) {
    case statuses.DEADLINE_EXCEEDED:
      return new LedgerTrustError('timeout', 'The call took longer than it may: its outcome is not known.', facts);
    case statuses.UNAVAILABLE:
    case statuses.CANCELLED:
    case statuses.INTERNAL:
    case statuses.UNKNOWN: {
      const sent = !/no connection established|name resolution|failed to connect|closed before call started/i.test(
        error.details,
      );
      const message = sent
        ? 'The connection ended before the answer was there.'
        : 'The service cannot be reached: check the address, and that the service runs.';
      return new LedgerTrustError('connection_lost', message, { ...facts, details: { sent }, cause: error });
    }
    default: {
      // grpc-js itself reports this, on the server or here.
      if (error.code === statuses.RESOURCE_EXHAUSTED && /message .*larger than/.test(error.details)) {
        const message = `A message is larger than gRPC takes: ${error.details}.`;
        return new LedgerTrustError('payload_too_large', message, facts);
      }
      const message = `The address answered gRPC status ${error.code} and not in the words of this API: check the address.`;
      return new LedgerTrustError('invalid_answer', message, { ...facts, cause: error });
    }
  }
}

/**
 * The same for a stream of many messages. If gRPC itself finds a message too large, it ends the stream without an
 * answer to the others: for all of them the connection is lost. The service answers all messages before it reports
 * this.
 */
export function grpcStreamError(error: ServiceError): LedgerTrustError {
  const known = grpcError(error);
  if (known.code !== 'payload_too_large' || infoOf(error.metadata) !== null) return known;
  const { grpcStatus, requestId } = known;
  const message = `The stream ended before all outcomes were there. ${known.message}`;
  return new LedgerTrustError('connection_lost', message, { grpcStatus, requestId, cause: error });
}

export function isServiceError(thrown: unknown): thrown is ServiceError {
  return thrown instanceof Error && 'code' in thrown && 'details' in thrown && typeof thrown.code === 'number';
}

export function textOf(metadata: Metadata | null | undefined, name: string): string | null {
  const value = metadata?.get(name)[0];
  return typeof value === 'string' ? value : null;
}

function infoOf(metadata: Metadata | undefined) {
  const bytes = metadata?.get('grpc-status-details-bin')[0];
  if (!(bytes instanceof Uint8Array)) return null;
  try {
    for (const detail of fromBinary(StatusSchema, bytes).details) {
      const info = anyUnpack(detail, ErrorInfoSchema);
      if (info?.domain === 'svc') return info;
    }
  } catch {
    // Details that cannot be parsed are not from this service.
  }
  return null;
}

/** Parses details that are JSON text, from metadata or from an event's outcome. Returns {} if they cannot be parsed. */
export function detailsOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
