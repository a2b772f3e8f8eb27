import { Code } from '@connectrpc/connect';
import { errorTable } from '../../domain/error-codes.ts';
import type { ErrorCode } from '../../domain/errors.ts';

/** gRPC and Connect share their numbers. */
export function statusOf(code: ErrorCode): { readonly http: number; readonly grpc: number } {
  const { http, grpc } = errorTable[code];
  return { http, grpc: Code[grpc] };
}
