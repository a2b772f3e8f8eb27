import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { grpcError } from '../../../src/client/call/grpc-error.ts';

/** An error as grpc-js makes it where no service has answered in the words of this API. */
function bare(code: status, details: string): ServiceError {
  return Object.assign(new Error(details), { code, details, metadata: new Metadata() });
}

describe('an error of gRPC itself', () => {
  test.each([
    [status.RESOURCE_EXHAUSTED, 'Received message larger than max (1115137 vs 1114112)', 'payload_too_large'],
    [status.RESOURCE_EXHAUSTED, 'Attempted to send message with a size larger than 10', 'payload_too_large'],
    [status.RESOURCE_EXHAUSTED, 'Bandwidth exhausted or memory limit exceeded', 'invalid_answer'],
    [status.UNIMPLEMENTED, 'The server does not implement the method', 'invalid_answer'],
    [status.DEADLINE_EXCEEDED, 'Deadline exceeded after 1.0s', 'timeout'],
    [status.UNAVAILABLE, 'No connection established. Last error: ECONNREFUSED', 'connection_lost'],
    [status.INTERNAL, 'Received RST_STREAM with code 2', 'connection_lost'],
  ])('%i %s becomes %s', (code, details, told) => {
    expect(grpcError(bare(code, details)).code).toBe(told);
  });

  test('has sent: false if the connection was never established', () => {
    for (const details of ['No connection established', 'Channel closed before call started'])
      expect(grpcError(bare(status.UNAVAILABLE, details)).details).toEqual({ sent: false });
    expect(grpcError(bare(status.UNAVAILABLE, 'Connection dropped')).details).toEqual({ sent: true });
  });

  test('has the gRPC status code as grpcStatus, and no HTTP status', () => {
    expect(grpcError(bare(status.UNAVAILABLE, 'Connection dropped'))).toMatchObject({
      status: null,
      grpcStatus: status.UNAVAILABLE,
    });
  });
});
