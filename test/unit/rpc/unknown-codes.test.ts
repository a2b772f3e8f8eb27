import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { grpcError } from '../../../src/client/call/grpc-error.ts';
import { restError } from '../../../src/client/call/rest-error.ts';
import { errorCodeOf, errorCodes } from '../../../src/domain/errors.ts';
import { ErrorInfoSchema } from '../../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { statusOf } from '../../../src/rpc/call/status.ts';

/** Codes that this version does not have. The last ones are properties of every object. */
const unknown = ['quota_exceeded', '', 'INTERNAL', 'toString', '__proto__', 'constructor'];

describe('an error code of another version', () => {
  test.each(unknown)('%j is internal', (code) => {
    expect(errorCodeOf(code)).toBe('internal');
    expect(statusOf(errorCodeOf(code))).toEqual({ http: 500, grpc: status.INTERNAL });
  });

  test('is internal to the client over REST, and its details name it', () => {
    const body = JSON.stringify({ error: { code: 'quota_exceeded', message: 'Too much.', details: { limit: 3 } } });
    expect(restError(429, body, 'r', null)).toMatchObject({
      code: 'internal',
      message: 'Too much.',
      status: 429,
      details: { limit: 3, unknown_code: 'quota_exceeded' },
    });
  });

  test('is internal to the client over gRPC, and its details name it', () => {
    const info = create(ErrorInfoSchema, {
      reason: 'quota_exceeded',
      domain: 'svc',
      metadata: { details: '{"a":1}', cut: 'message,b' },
    });
    const metadata = new Metadata();
    const details = [anyPack(ErrorInfoSchema, info)];
    metadata.set('grpc-status-details-bin', Buffer.from(toBinary(StatusSchema, create(StatusSchema, { details }))));
    const error: ServiceError = Object.assign(new Error(), { code: 8, details: 'Too much.', metadata });
    expect(grpcError(error)).toMatchObject({
      code: 'internal',
      cut: ['message', 'b'],
      message: 'Too much.',
      details: { a: 1, unknown_code: 'quota_exceeded' },
    });
  });
});

test('a code that this version knows stays as it is', () => {
  for (const code of errorCodes) expect(errorCodeOf(code)).toBe(code);
});

test('no text is cast to an error code', () => {
  const root = resolve(import.meta.dirname, '../../..');
  const files = ['src', 'cluster'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('gen/'))
      .map((name) => join(root, folder, name)),
  );
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => /\bas (Client)?ErrorCode\b/.test(readFileSync(file, 'utf8')))).toEqual([]);
});
