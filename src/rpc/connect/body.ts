import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../limits.ts';
import { tooLarge } from '../http/body.ts';

/** How Connect and gRPC-Web put a message into an HTTP body. */
export interface ConnectFormat {
  readonly json: boolean;
  /** The body is frames: flags, length, message. */
  readonly framed: boolean;
  /** Name of the header that says how the message is compressed. */
  readonly encodingHeader: string;
}

const formats: readonly [RegExp, ConnectFormat][] = [
  [
    /^application\/json\s*(;\s*charset=("?)utf-8\2\s*)?$/i,
    { json: true, framed: false, encodingHeader: 'content-encoding' },
  ],
  [/^application\/proto$/i, { json: false, framed: false, encodingHeader: 'content-encoding' }],
  [/^application\/connect\+json$/i, { json: true, framed: true, encodingHeader: 'connect-content-encoding' }],
  [/^application\/connect\+proto$/i, { json: false, framed: true, encodingHeader: 'connect-content-encoding' }],
  [/^application\/grpc-web(\+proto)?$/i, { json: false, framed: true, encodingHeader: 'grpc-encoding' }],
  [/^application\/grpc-web\+json$/i, { json: true, framed: true, encodingHeader: 'grpc-encoding' }],
];

/** The format of a media type; null for one of neither protocol. */
export function connectFormat(contentType: string | undefined): ConnectFormat | null {
  return formats.find(([pattern]) => pattern.test(contentType ?? ''))?.[1] ?? null;
}

const FRAME_HEAD_BYTES = 5;
const COMPRESSED = 1;

const unzip: Readonly<Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
};

/** The one message of a body, unpacked: at most requestBodyMaxBytes, whatever it was before. */
export async function unpackMessage(
  format: ConnectFormat,
  encoding: string | undefined,
  body: Buffer,
): Promise<Buffer> {
  if (!format.framed) return encoding === undefined || encoding === 'identity' ? body : decompress(encoding, body);
  if (body.length < FRAME_HEAD_BYTES || body.length !== FRAME_HEAD_BYTES + body.readUInt32BE(1)) throw badFrame();
  const message = body.subarray(FRAME_HEAD_BYTES);
  const flags = body.readUInt8(0);
  if (flags === 0) return message;
  if (flags !== COMPRESSED || encoding === undefined) throw badFrame();
  return encoding === 'identity' ? message : decompress(encoding, message);
}

async function decompress(encoding: string, bytes: Buffer): Promise<Buffer> {
  const inflate = Object.hasOwn(unzip, encoding) ? unzip[encoding] : undefined;
  if (inflate === undefined) {
    throw new LedgerError('unsupported_media_type', 'A message may be compressed as gzip or br.', {
      expected: 'gzip or br',
    });
  }
  try {
    return await inflate(bytes, { maxOutputLength: limits.requestBodyMaxBytes });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge();
    throw new LedgerError('invalid_argument', `The message is not compressed as ${encoding}.`, {}, error);
  }
}

function badFrame(): LedgerError {
  return new LedgerError('invalid_argument', 'The body must be one message, framed as the protocol says.');
}
