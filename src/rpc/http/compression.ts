import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Compression } from '@connectrpc/connect/protocol';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import Negotiator from 'negotiator';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { HttpResponse } from './response.ts';

// Compression of answers on the HTTP port (RFC 9110, section 8.4.1). zlib works in libuv's threads. An answer with a
// secret is never compressed: its length would tell an attacker who can add text to the answer what the secret is
// (BREACH). The option `secret` of the descriptors says which fields are secrets.

export type ContentEncoding = 'br' | 'gzip';

const offered = ['br', 'gzip', 'identity'];

/** Returns the encoding that an Accept-Encoding header would rather have; null for none. */
export function encodingFor(acceptEncoding: string | undefined): ContentEncoding | null {
  if (acceptEncoding === undefined) return null;
  const [best] = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } }).encodings(offered);
  return best === 'br' || best === 'gzip' ? best : null;
}

/** How much work goes into an answer that is compressed for one caller, and into one that is kept for all. */
const effort = { answer: { gzip: 5, br: 4 }, kept: { gzip: 9, br: 8 } } as const;

const gzipped = promisify(gzip);
const brotlied = promisify(brotliCompress);

/** A window of 256 KiB: a larger one gains little on JSON, and takes its size twice. */
const BROTLI_WINDOW_BITS = 18;

function compress(bytes: string | Uint8Array, encoding: ContentEncoding, kind: keyof typeof effort): Promise<Buffer> {
  if (encoding === 'gzip') return gzipped(bytes, { level: effort[kind].gzip });
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: effort[kind].br,
    [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return brotlied(bytes, { params });
}

/** What compressing one answer may hold: its bytes, the result, and the compressor. */
function heldBytes(length: number): number {
  return 2 * length + limits.compressorBytes;
}

let running = 0;

/**
 * Compresses an answer for its caller, and counts what that holds as held by the answer. Returns null if the answer is
 * better sent as it is: compressionsMax others are being compressed, or the memory budget has no room.
 */
export function compressAnswer(
  response: HttpResponse,
  body: string | Buffer,
  encoding: ContentEncoding,
): Promise<Buffer | null> | null {
  if (running >= limits.compressionsMax || !response.holdAnswerIfFree(heldBytes(body.length))) return null;
  running += 1;
  return compress(body, encoding, 'answer')
    .catch(() => null)
    .finally(() => {
      running -= 1;
    });
}

const kept = new WeakMap<Uint8Array, Map<ContentEncoding, Promise<Buffer>>>();

/** Compresses bytes that never change. `keep` is called once for each encoding, with the result. */
export function compressOnce(
  bytes: Uint8Array,
  encoding: ContentEncoding,
  keep: (compressed: Buffer) => Buffer,
): Promise<Buffer> {
  const byEncoding = kept.get(bytes) ?? new Map<ContentEncoding, Promise<Buffer>>();
  kept.set(bytes, byEncoding);
  const compressed = byEncoding.get(encoding) ?? compress(bytes, encoding, 'kept').then(keep);
  byEncoding.set(encoding, compressed);
  return compressed;
}

/** The same compression for connect-es, which frames and compresses messages itself. */
export function connectCompressions(memory: MemoryBudget): Compression[] {
  return [compressionGzip, compressionBrotli].map((library) => ({
    ...library,
    async compress(bytes) {
      const held = heldBytes(bytes.length);
      memory.add('answer', held);
      try {
        return new Uint8Array(await compress(bytes, library.name === 'br' ? 'br' : 'gzip', 'answer'));
      } finally {
        memory.release('answer', held);
      }
    },
  }));
}
