import { sha256Hex, sha256HexForm } from '../../domain/keys/hash.ts';
import { sha256Buffer } from '../../domain/keys/hash-buffer.ts';
import { uuidBytes } from '../../domain/values/uuid.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import { orderMaxBytes, recordIdMaxBytes } from '../store-text.ts';

/**
 * The keys of every table. LMDB compares keys byte by byte, and a key has at most 1,978 bytes. So texts that may be
 * longer are hashed. Texts that tables are sorted by are not hashed: their length is limited (store-text.ts).
 */

export const ledgerKeyBytes = 16;
/** Bytes of the hash of a record's kind, at the beginning of the record's key. */
export const recordKindBytes = 16;
const SEQ_BYTES = 8;
const UUID_CHARS = 36;
/** Short, because these keys are spread over their whole table. */
const COMMAND_BYTES = 16;
/** A text up to this length is its own key, readable in a dump. A longer text is replaced by its SHA-256. */
const PLAIN_TEXT_MAX_BYTES = 1024;
const PLAIN = 1;
const HASHED = 2;
/** First byte of a hashed scope. The first byte of any other scope is the length of its prefix. */
const HASHED_SCOPE = 0xff;
const SCOPE_PREFIX_MAX_CHARS = 64;

/** The 16 bytes of a ledger's id if it is a UUID, else 16 bytes of its hash. */
export function ledgerKey(ledgerId: string): Buffer {
  return isUuid(ledgerId) ? uuidBytes(ledgerId) : sha256Buffer(ledgerId).subarray(0, ledgerKeyBytes);
}

/** ledger | scope: the key prefix of a scope's seqs. In a scope such as `master:<uuid>` the UUID takes 16 bytes. */
export function scopePrefix(ledger: Buffer, scope: string): Buffer {
  const prefix = scope.slice(0, -UUID_CHARS);
  const id = scope.slice(-UUID_CHARS);
  const isAscii = Buffer.byteLength(prefix) === prefix.length;
  if (prefix.length <= SCOPE_PREFIX_MAX_CHARS && isAscii && isUuid(id))
    return Buffer.concat([ledger, Buffer.of(prefix.length), Buffer.from(prefix, 'latin1'), uuidBytes(id)]);
  return Buffer.concat([ledger, Buffer.of(HASHED_SCOPE), sha256Buffer(scope)]);
}

/** prefix | seq, big-endian. With the ledger's key as prefix it is the key of an event. */
export function seqKey(prefix: Buffer, seq: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + SEQ_BYTES);
  key.set(prefix);
  writeSeq(key, seq);
  return key;
}

/** Writes the seq into the last 8 bytes of a key, so that one buffer can serve for many keys. */
export function writeSeq(key: Buffer, seq: number): void {
  const at = key.length - SEQ_BYTES;
  key.writeUInt32BE(Math.floor(seq / 2 ** 32), at);
  key.writeUInt32BE(seq % 2 ** 32, at + 4);
}

export function seqOfKey(key: Uint8Array): number {
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  const at = key.byteLength - SEQ_BYTES;
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

/** ledger | form | 16 bytes of the command key's id if it is a SHA-256 in hex, else of the id's hash. */
export function commandKey(ledger: Buffer, id: string): Buffer {
  const key = Buffer.allocUnsafe(ledgerKeyBytes + 1 + COMMAND_BYTES);
  key.set(ledger);
  const plain = sha256HexForm.test(id);
  key[ledgerKeyBytes] = plain ? PLAIN : HASHED;
  key.write(plain ? id : sha256Hex(id), ledgerKeyBytes + 1, COMMAND_BYTES, 'hex');
  return key;
}

export function textKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  return bytes.length <= PLAIN_TEXT_MAX_BYTES
    ? Buffer.concat([Buffer.of(PLAIN), bytes])
    : Buffer.concat([Buffer.of(HASHED), sha256Buffer(bytes)]);
}

/** Inverse of textKey. null for a text that is stored as a hash. */
export function textOfKey(key: Uint8Array): string | null {
  return key[0] === PLAIN ? Buffer.from(key).toString('utf8', 1) : null;
}

const ownerBytes = 16;

/** 16 bytes of the owner's hash | level | index. */
export function tileKey(owner: string, level: number, index: number): Buffer {
  return seqKey(Buffer.concat([sha256Buffer(owner).subarray(0, ownerBytes), Buffer.of(level)]), index);
}

/** Level and index in a key of tileKey. */
export function placeOfTileKey(key: Uint8Array): { readonly level: number; readonly index: number } {
  return { level: key[ownerBytes] ?? 0, index: seqOfKey(key) };
}

/** kind | id of a record. null if no record can have that id. */
export function recordKey(kind: string, id: string): Buffer | null {
  const idBytes = Buffer.from(id);
  if (idBytes.length === 0 || idBytes.length > recordIdMaxBytes) return null;
  return Buffer.concat([sha256Buffer(`kind:${kind}`).subarray(0, recordKindBytes), idBytes]);
}

export function listPrefix(list: string): Buffer {
  return sha256Buffer(`list:${list}`);
}

export const lookupPrefixBytes = 32;

export function lookupPrefix(kind: string, name: string, value: string): Buffer {
  return sha256Buffer(JSON.stringify([kind, name, value]));
}

/**
 * prefix | order. A too long order, which is never stored, is cut one byte after the limit, so that it sorts the same.
 */
export function orderKey(prefix: Buffer, order: string): Buffer {
  return Buffer.concat([prefix, Buffer.from(order).subarray(0, orderMaxBytes + 1)]);
}

/** prefix | order | 0 | id. No order holds a NUL, so an order sorts before all longer ones that begin with it. */
export function orderIdKey(prefix: Buffer, order: string, id: string): Buffer {
  const idBytes = Buffer.from(id).subarray(0, recordIdMaxBytes + 1);
  return Buffer.concat([orderKey(prefix, order), Buffer.of(0), idBytes]);
}

/** Order and id in the key of a look-up. A line's key has an empty id. */
export function orderIdOfKey(key: Uint8Array, prefixBytes: number): { readonly order: string; readonly id: string } {
  const text = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8', prefixBytes);
  const at = text.indexOf('\0');
  return at < 0 ? { order: text, id: '' } : { order: text.slice(0, at), id: text.slice(at + 1) };
}

export function afterPrefix(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  for (let at = end.length - 1; at >= 0; at--) {
    const byte = end[at] ?? 0;
    if (byte < 0xff) {
      end[at] = byte + 1;
      return end.subarray(0, at + 1);
    }
  }
  return Buffer.alloc(prefix.length + 1, 0xff);
}

/** expiresAt (ms since 1970) | key of the record. */
export function expiryKey(expiresAt: number, record: Buffer): Buffer {
  const key = Buffer.allocUnsafe(SEQ_BYTES + record.length);
  writeSeq(key.subarray(0, SEQ_BYTES), expiresAt);
  key.set(record, SEQ_BYTES);
  return key;
}

export function timeOfExpiryKey(key: Uint8Array): number {
  return seqOfKey(key.subarray(0, SEQ_BYTES));
}

export function recordOfExpiryKey(key: Uint8Array): Buffer {
  return Buffer.from(key).subarray(SEQ_BYTES);
}
