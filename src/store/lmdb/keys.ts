import { sha256, sha256Hex, sha256HexForm } from '../../domain/hash.ts';
import { isUuid, uuidBytes } from '../../domain/uuid.ts';
import { orderMaxBytes, recordIdMaxBytes } from '../store-text.ts';

/**
 * The keys of every table. LMDB compares them byte by byte and takes at most 1,978 bytes, so whatever may be longer
 * is hashed, unless it is sorted by, and then it has a bound (store-text.ts).
 */

export const ledgerKeyBytes = 16;
/** What a record's kind takes of its key. */
export const recordKindBytes = 16;
const SEQ_BYTES = 8;
const UUID_CHARS = 36;
/** Of the hash that names a command: keys that land all over a table should be short. */
const COMMAND_BYTES = 16;
/** A point key up to this length stands as it is, readable in a dump; longer ones as their SHA-256. */
const PLAIN_TEXT_MAX_BYTES = 1024;
const PLAIN = 1;
const HASHED = 2;
/** First byte of a scope key that is a hash; others start with the length of their prefix. */
const HASHED_SCOPE = 0xff;
const SCOPE_PREFIX_MAX_CHARS = 64;

/** 16 bytes: of the UUID that a ledger's id is, else of the id's hash. */
export function ledgerKey(ledgerId: string): Buffer {
  return isUuid(ledgerId) ? uuidBytes(ledgerId) : sha256(ledgerId).subarray(0, ledgerKeyBytes);
}

/** ledger | scope: what the seqs of a scope's events stand behind. `master:<uuid>` and the like take 16 bytes for the UUID. */
export function scopePrefix(ledger: Buffer, scope: string): Buffer {
  const prefix = scope.slice(0, -UUID_CHARS);
  const id = scope.slice(-UUID_CHARS);
  if (prefix.length <= SCOPE_PREFIX_MAX_CHARS && isAscii(prefix) && isUuid(id))
    return Buffer.concat([ledger, Buffer.of(prefix.length), Buffer.from(prefix, 'latin1'), uuidBytes(id)]);
  return Buffer.concat([ledger, Buffer.of(HASHED_SCOPE), sha256(scope)]);
}

/** prefix | seq, big-endian. Behind the ledger's key: the key of an event, so that a ledger's events lie in their order. */
export function seqKey(prefix: Buffer, seq: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + SEQ_BYTES);
  key.set(prefix);
  writeSeq(key, seq);
  return key;
}

/** Writes the seq into the last 8 bytes of a key that is used again. */
export function writeSeq(key: Buffer, seq: number): void {
  const at = key.length - SEQ_BYTES;
  key.writeUInt32BE(Math.floor(seq / 2 ** 32), at);
  key.writeUInt32BE(seq % 2 ** 32, at + 4);
}

/** The seq in the last 8 bytes. */
export function seqOfKey(key: Uint8Array): number {
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  const at = key.byteLength - SEQ_BYTES;
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

/** ledger | 16 bytes of the command's id: of its hash, unless it is 32 bytes in hex, which are as good as a hash. */
export function commandKey(ledger: Buffer, id: string): Buffer {
  const key = Buffer.allocUnsafe(ledgerKeyBytes + 1 + COMMAND_BYTES);
  key.set(ledger);
  const plain = sha256HexForm.test(id);
  key[ledgerKeyBytes] = plain ? PLAIN : HASHED;
  key.write(plain ? id : sha256Hex(id), ledgerKeyBytes + 1, COMMAND_BYTES, 'hex');
  return key;
}

/** For cells and snapshots, which are found by their whole name alone. */
export function textKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  return bytes.length <= PLAIN_TEXT_MAX_BYTES
    ? Buffer.concat([Buffer.of(PLAIN), bytes])
    : Buffer.concat([Buffer.of(HASHED), sha256(bytes)]);
}

/** Kind and id of a record. null where no record can have that id. */
export function recordKey(kind: string, id: string): Buffer | null {
  const idBytes = Buffer.from(id);
  if (idBytes.length === 0 || idBytes.length > recordIdMaxBytes) return null;
  return Buffer.concat([sha256(`kind:${kind}`).subarray(0, recordKindBytes), idBytes]);
}

/** What the lines of a list stand behind. */
export function listPrefix(list: string): Buffer {
  return sha256(`list:${list}`);
}

/** A SHA-256. */
export const lookupPrefixBytes = 32;

/** What the records of a look-up stand behind. */
export function lookupPrefix(kind: string, name: string, value: string): Buffer {
  return sha256(JSON.stringify([kind, name, value]));
}

/** prefix | order. Longer orders than are ever stored are cut one byte beyond the bound, which keeps their place. */
export function orderKey(prefix: Buffer, order: string): Buffer {
  return Buffer.concat([prefix, Buffer.from(order).subarray(0, orderMaxBytes + 1)]);
}

/** prefix | order | 0 | id: no order holds a NUL, so a shorter one always comes first. */
export function orderIdKey(prefix: Buffer, order: string, id: string): Buffer {
  const idBytes = Buffer.from(id).subarray(0, recordIdMaxBytes + 1);
  return Buffer.concat([orderKey(prefix, order), Buffer.of(0), idBytes]);
}

/** Order and id from the key of a look-up; of a line's key the order alone. */
export function orderIdOfKey(key: Uint8Array, prefixBytes: number): { readonly order: string; readonly id: string } {
  const text = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8', prefixBytes);
  const at = text.indexOf('\0');
  return at < 0 ? { order: text, id: '' } : { order: text.slice(0, at), id: text.slice(at + 1) };
}

/** Every key that starts with the prefix lies before this one. */
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

/** expiresAt, milliseconds since 1970 | record, so that what expires first lies first. */
export function expiryKey(expiresAt: number, record: Buffer): Buffer {
  const key = Buffer.allocUnsafe(SEQ_BYTES + record.length);
  writeSeq(key.subarray(0, SEQ_BYTES), expiresAt);
  key.set(record, SEQ_BYTES);
  return key;
}

export function timeOfExpiryKey(key: Uint8Array): number {
  return seqOfKey(key.subarray(0, SEQ_BYTES));
}

/** The record that an expiry stands for. */
export function recordOfExpiryKey(key: Uint8Array): Buffer {
  return Buffer.from(key).subarray(SEQ_BYTES);
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: one byte a character is what is asked
  return /^[\x00-\x7f]*$/.test(text);
}
