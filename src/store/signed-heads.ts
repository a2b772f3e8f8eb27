import { sha256Buffer } from '../domain/keys/hash-buffer.ts';
import { hashBytes } from './tile-store.ts';
import { unreadableRecord } from './unreadable-record.ts';

/** The largest size of a log that was signed, and the root of the tree of that size. */
export interface SignedHead {
  /** Number of leaves, 1 or more. */
  readonly size: number;
  readonly root: Buffer;
}

/**
 * The signed head of each log, by the log's origin. Nothing is ever removed. Both methods may throw LedgerError
 * `unavailable`. Arguments and results are never shared with the store.
 */
export interface SignedHeads {
  /**
   * Returns null if no size of the log was ever signed. Sees every raise that resolved, on any node. Throws
   * UnreadableRecord for a damaged value: it must not look like a log that was never signed.
   */
  get(origin: string): Promise<SignedHead | null>;
  /**
   * When it resolves, a head of this size or a larger one is durable. A smaller size never replaces a larger one,
   * however late its write arrives. After LedgerError `unavailable` the head may or may not have been raised, and may
   * still be raised later; the raise may be repeated. All writers write the same root for a size. Throws RangeError if
   * this is no head.
   */
  raise(origin: string, size: number, root: Uint8Array): Promise<void>;
}

const sizeBytes = 8;
const checksumBytes = 16;

/** The stored form: the size, the root, and a checksum of the origin and both. */
export function formatSignedHead(origin: string, size: number, root: Uint8Array): Buffer {
  const head = Buffer.alloc(sizeBytes + hashBytes);
  head.writeBigUInt64BE(BigInt(size));
  head.set(root, sizeBytes);
  return Buffer.concat([head, checksum(origin, head)]);
}

/** Parses what formatSignedHead returned. null for any other value. */
export function parseSignedHead(origin: string, value: Uint8Array): SignedHead | null {
  const bytes = Buffer.from(value);
  const head = bytes.subarray(0, sizeBytes + hashBytes);
  if (head.length < sizeBytes + hashBytes) return null;
  if (!checksum(origin, head).equals(bytes.subarray(sizeBytes + hashBytes))) return null;
  const size = Number(head.readBigUInt64BE());
  return size >= 1 && Number.isSafeInteger(size) ? { size, root: head.subarray(sizeBytes) } : null;
}

/** Like parseSignedHead. Reports any other value, and throws UnreadableRecord. `value` is null if there is none. */
export function readSignedHead(origin: string, value: Uint8Array | null): SignedHead {
  const head = value === null ? null : parseSignedHead(origin, value);
  if (head === null) throw unreadableRecord('signed_head', origin, 'its value cannot be read');
  return head;
}

function checksum(origin: string, head: Uint8Array): Buffer {
  return sha256Buffer(Buffer.concat([Buffer.from(origin), Buffer.of(0), head])).subarray(0, checksumBytes);
}
