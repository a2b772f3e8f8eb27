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
export function formatCommand({ seq, fingerprint }: FoundCommand): Buffer {
  const isHash = sha256HexForm.test(fingerprint);
  const value = Buffer.allocUnsafe(FINGERPRINT_AT + (isHash ? HASH_BYTES : Buffer.byteLength(fingerprint)));
  value.writeUIntBE(seq, 0, SEQ_BYTES);
  value[FORM_AT] = isHash ? HEX : TEXT;
  value.write(fingerprint, FINGERPRINT_AT, isHash ? 'hex' : 'utf8');
  return value;
}

/** Parses what formatCommand returned. */
export function parseCommand(value: Uint8Array): FoundCommand {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return {
    seq: bytes.readUIntBE(0, SEQ_BYTES),
    fingerprint: bytes.toString(bytes[FORM_AT] === HEX ? 'hex' : 'utf8', FINGERPRINT_AT),
  };
}
