import { promisify } from 'node:util';
import { brotliDecompress, brotliDecompressSync, gunzip, gunzipSync } from 'node:zlib';
import { LedgerError } from '../../domain/errors.ts';
import { FairPlaces } from '../../runtime/limits/fair-places.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { boundConnectTimeout, boundGrpcTimeout } from '../call/timeouts.ts';
import { frameHeadBytes } from '../grpc/worker/framing.ts';
import { tooLarge } from '../http/body.ts';

/** How Connect and gRPC-Web put a message into an HTTP body. */
export interface ConnectFormat {
  readonly json: boolean;
  /** Whether the body is frames: flags, length, message. */
  readonly framed: boolean;
  readonly encodingHeader: string;
  readonly timeout: TimeoutHeader;
}

interface TimeoutHeader {
  readonly header: string;
  readonly expected: string;
  /** Returns the timeout, as long as it fits a timer; null if it is malformed. */
  bound(text: string): string | null;
}

const connectTimeout: TimeoutHeader = {
  header: 'Connect-Timeout-Ms',
  expected: 'milliseconds in at most 10 digits',
  bound: boundConnectTimeout,
};
const grpcTimeout: TimeoutHeader = {
  header: 'grpc-timeout',
  expected: 'at most 8 digits and a unit: H, M, S, m, u or n',
  bound: boundGrpcTimeout,
};

const connectUnary = { framed: false, encodingHeader: 'content-encoding', timeout: connectTimeout };
const connectStream = { framed: true, encodingHeader: 'connect-content-encoding', timeout: connectTimeout };
const grpcWeb = { framed: true, encodingHeader: 'grpc-encoding', timeout: grpcTimeout };

const formats: readonly [RegExp, ConnectFormat][] = [
  [/^application\/json\s*(;\s*charset=("?)utf-8\2\s*)?$/i, { ...connectUnary, json: true }],
  [/^application\/proto$/i, { ...connectUnary, json: false }],
  [/^application\/connect\+json$/i, { ...connectStream, json: true }],
  [/^application\/connect\+proto$/i, { ...connectStream, json: false }],
  [/^application\/grpc-web(\+proto)?$/i, { ...grpcWeb, json: false }],
  [/^application\/grpc-web\+json$/i, { ...grpcWeb, json: true }],
];

/** Returns the format of a media type; null if it belongs to neither protocol. */
export function connectFormat(contentType: string | undefined): ConnectFormat | null {
  return formats.find(([pattern]) => pattern.test(contentType ?? ''))?.[1] ?? null;
}

const COMPRESSED = 1;

interface Unzip {
  now(bytes: Buffer, options: { readonly maxOutputLength: number }): Buffer;
  later(bytes: Buffer, options: { readonly maxOutputLength: number }): Promise<Buffer>;
}

const unzip: Readonly<Record<string, Unzip>> = {
  gzip: { now: gunzipSync, later: promisify(gunzip) },
  br: { now: brotliDecompressSync, later: promisify(brotliDecompress) },
};

/** A message of at most so many bytes is unpacked on the main thread: to wait for another thread takes longer. */
const unpackedNowMaxBytes = 16 * 1024;

/**
 * Larger messages that are unpacked at once: of all callers, and of one address. A small body may become
 * requestBodyMaxBytes, which are counted only when it is unpacked. Those that wait are counted as bodies.
 */
const places = new FairPlaces({ total: 4, perCaller: 2 });

interface MessageSender {
  readonly address: string;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
}

/**
 * Returns the single message of a body, of at most requestBodyMaxBytes after decompression. Throws `payload_too_large`,
 * `unsupported_media_type` or `invalid_argument`.
 */
export async function unpackMessage(
  format: ConnectFormat,
  encoding: string | undefined,
  body: Buffer,
  sender: MessageSender,
): Promise<Buffer> {
  if (!format.framed)
    return encoding === undefined || encoding === 'identity' ? body : decompress(encoding, body, sender);
  if (body.length < frameHeadBytes || body.length !== frameHeadBytes + body.readUInt32BE(1)) throw badFrame();
  const message = body.subarray(frameHeadBytes);
  const flags = body.readUInt8(0);
  if (flags === 0) return message;
  if (flags !== COMPRESSED || encoding === undefined) throw badFrame();
  return encoding === 'identity' ? message : decompress(encoding, message, sender);
}

async function decompress(encoding: string, bytes: Buffer, { address, signal }: MessageSender): Promise<Buffer> {
  const unpack = Object.hasOwn(unzip, encoding) ? unzip[encoding] : undefined;
  if (unpack === undefined) {
    throw new LedgerError('unsupported_media_type', 'A message may be compressed as gzip or br.', {
      expected: 'gzip or br',
    });
  }
  const failed = (error: unknown): LedgerError =>
    error instanceof RangeError
      ? tooLarge()
      : new LedgerError('invalid_argument', `The message is not compressed as ${encoding}.`, {}, error);
  try {
    if (bytes.length <= unpackedNowMaxBytes) return unpack.now(bytes, { maxOutputLength: unpackedNowMaxBytes });
  } catch (error) {
    if (!(error instanceof RangeError)) throw failed(error);
  }
  await places.take(address, signal, callerLeft);
  try {
    return await unpack.later(bytes, { maxOutputLength: limits.requestBodyMaxBytes });
  } catch (error) {
    throw failed(error);
  } finally {
    places.leave(address);
  }
}

function callerLeft(): LedgerError {
  return new LedgerError('unavailable', 'The caller left before its message was unpacked: call again.');
}

function badFrame(): LedgerError {
  return new LedgerError('invalid_argument', 'The body must be one message, framed as the protocol says.');
}
