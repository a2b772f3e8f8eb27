import { sha256HexForm } from '../../../domain/keys/hash.ts';
import type { FoundCommand } from '../../ledger-store.ts';

const SEQ_BYTES = 6;
const FORM_AT = SEQ_BYTES;
const FINGERPRINT_AT = SEQ_BYTES + 1;
const HASH_BYTES = 32;
const HEX = 1;
const TEXT = 2;

/**
 * Returns the stored value of a command key: the seq, then the fingerprint, as bytes if it is a hash in hex. Command
 * keys are the only part of an append that is spread over its whole table, so smaller values mean fewer pages to write.
 */
export function formatMark({ seq, fingerprint }: FoundCommand): Buffer {
  const isHash = sha256HexForm.test(fingerprint);
  const mark = Buffer.allocUnsafe(FINGERPRINT_AT + (isHash ? HASH_BYTES : Buffer.byteLength(fingerprint)));
  mark.writeUIntBE(seq, 0, SEQ_BYTES);
  mark[FORM_AT] = isHash ? HEX : TEXT;
  mark.write(fingerprint, FINGERPRINT_AT, isHash ? 'hex' : 'utf8');
  return mark;
}

/** Parses what formatMark returned. */
export function parseMark(mark: Uint8Array): FoundCommand {
  const bytes = Buffer.from(mark.buffer, mark.byteOffset, mark.byteLength);
  return {
    seq: bytes.readUIntBE(0, SEQ_BYTES),
    fingerprint: bytes.toString(bytes[FORM_AT] === HEX ? 'hex' : 'utf8', FINGERPRINT_AT),
  };
}
