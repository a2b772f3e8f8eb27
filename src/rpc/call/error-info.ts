import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { boundError, namesOf, trailerBounds } from '../../domain/error-bounds.ts';
import type { LedgerError } from '../../domain/errors.ts';
import { type ErrorInfo, ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import { statusOf } from './status.ts';

/**
 * An error in the form that gRPC, gRPC-Web and Connect send. It is bounded because it has to fit into headers or
 * trailers.
 */
interface RpcError {
  readonly message: string;
  /**
   * `reason` is the code and `domain` is `svc`. `metadata` has `request_id` and, if there are details, `details` as
   * JSON text. `cut` names, separated by commas, what was too long and was cut: details, and `message`.
   */
  readonly info: ErrorInfo;
}

export function rpcError(error: LedgerError, requestId: string): RpcError {
  const { message, details, cut } = boundError(error.message, error.details, trailerBounds);
  const json = JSON.stringify(details);
  const metadata: Record<string, string> = { request_id: requestId };
  if (json !== '{}') metadata.details = json;
  if (cut.length > 0) metadata.cut = namesOf(cut);
  return { message, info: create(ErrorInfoSchema, { reason: error.code, domain: 'svc', metadata }) };
}

/**
 * Returns the error as a serialized google.rpc.Status, the value of the gRPC trailer `grpc-status-details-bin`. `code`
 * is the call's gRPC status if it differs from the status of the error's code. `message` is the bounded message.
 */
export function statusDetails(
  error: LedgerError,
  requestId: string,
  code = statusOf(error.code).grpc,
): { readonly message: string; readonly bytes: Buffer } {
  const { message, info } = rpcError(error, requestId);
  const status: MessageInitShape<typeof StatusSchema> = { code, message, details: [anyPack(ErrorInfoSchema, info)] };
  return { message, bytes: Buffer.from(toBinary(StatusSchema, create(StatusSchema, status))) };
}
