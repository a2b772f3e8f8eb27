import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import type { LedgerError } from '../../domain/errors.ts';
import { type ErrorInfo, ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../gen/google/rpc/status_pb.ts';
import { statusOf } from './status.ts';

/**
 * The error as google.rpc.ErrorInfo: `reason` is the code, `domain` is `svc`, `metadata` has `request_id` and, where there
 * are details, `details` as JSON text.
 */
export function errorInfo(error: LedgerError, requestId: string): ErrorInfo {
  const details = JSON.stringify(error.details);
  const metadata: Record<string, string> = { request_id: requestId };
  if (details !== '{}') metadata.details = details;
  return create(ErrorInfoSchema, { reason: error.code, domain: 'svc', metadata });
}

/**
 * A serialized google.rpc.Status that holds it: the value of the gRPC trailer `grpc-status-details-bin`. `code`: the call's status, where it is
 * not the one of the error's code.
 */
export function statusDetails(error: LedgerError, requestId: string, code = statusOf(error.code).grpc): Buffer {
  const status: MessageInitShape<typeof StatusSchema> = {
    code,
    message: error.message,
    details: [anyPack(ErrorInfoSchema, errorInfo(error, requestId))],
  };
  return Buffer.from(toBinary(StatusSchema, create(StatusSchema, status)));
}
