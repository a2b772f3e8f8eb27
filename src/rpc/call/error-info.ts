import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { boundError, namesOf, trailerBounds } from '../../domain/error-bounds.ts';
import type { LedgerError } from '../../domain/errors.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import { statusOf } from './status.ts';

/**
 * Returns an error as gRPC, gRPC-Web and Connect send it, bounded so that it fits into headers or trailers. The
 * `metadata` of `info` has `request_id`, `details` as JSON text if there are any, and in `cut` the comma-separated
 * names of what was cut: details, and `message`.
 */
export function rpcError(error: LedgerError, requestId: string) {
  const { message, details, cut } = boundError(error.message, error.details, trailerBounds);
  const json = JSON.stringify(details);
  const metadata: Record<string, string> = { request_id: requestId };
  if (json !== '{}') metadata.details = json;
  if (cut.length > 0) metadata.cut = namesOf(cut);
  return { message, info: create(ErrorInfoSchema, { reason: error.code, domain: 'svc', metadata }) };
}

/**
 * Returns the bounded message, and the error as a serialized google.rpc.Status: the value of the gRPC trailer
 * `grpc-status-details-bin`. `code` is the call's gRPC status if it differs from that of the error's code.
 */
export function statusDetails(error: LedgerError, requestId: string, code = statusOf(error.code).grpc) {
  const { message, info } = rpcError(error, requestId);
  const status: MessageInitShape<typeof StatusSchema> = { code, message, details: [anyPack(ErrorInfoSchema, info)] };
  return { message, bytes: Buffer.from(toBinary(StatusSchema, create(StatusSchema, status))) };
}
