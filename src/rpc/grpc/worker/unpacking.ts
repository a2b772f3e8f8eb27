import { gunzipSync, inflateSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';

/** The status that grpc-js has for the same failure. It sends what `unpack` throws. */
interface UnpackError {
  readonly code: number;
  readonly details: string;
}

/**
 * Decompresses a message to at most `maxBytes`. Synchronous, because many messages that are decompressed at the same
 * time would hold memory that is not counted yet. Throws UnpackError.
 */
export function unpack(packed: Uint8Array, encoding: string, maxBytes: number): Buffer {
  if (encoding !== 'gzip' && encoding !== 'deflate') {
    const details = 'Received message compressed with unsupported encoding';
    throw { code: status.UNIMPLEMENTED, details } satisfies UnpackError;
  }
  try {
    return (encoding === 'gzip' ? gunzipSync : inflateSync)(packed, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      const details = `Received message that decompresses to a size larger than ${maxBytes}`;
      throw { code: status.RESOURCE_EXHAUSTED, details } satisfies UnpackError;
    }
    throw { code: status.INTERNAL, details: 'Failed to decompress message' } satisfies UnpackError;
  }
}
