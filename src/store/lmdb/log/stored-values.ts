import { sha256HexForm } from '../../../domain/keys/hash.ts';
import { uuidFromBytes } from '../../../domain/values/uuid.ts';
import type { Claim, FoundCommand, Head } from '../../ledger-store.ts';
import { unreadableRecord } from '../../unreadable-record.ts';

/**
 * The version of a ledger's head record is the number of claims plus the number of events, and a claim's fence is the
 * version that it wrote. Versions never repeat. So a write that is conditional on the version replaces exactly the
 * record that was read, and two different versions with the same head belong to different claims.
 */

/** The head record's version while `claim` is the newest and the head is `head`. NaN for an invalid fence. */
export function expectedVersion(claim: Claim, head: Head | null): number {
  if (!/^[1-9][0-9]{0,15}$/.test(claim.fence)) return Number.NaN;
  return Number(claim.fence) + (nextSeq(head) - nextSeq(claim.head));
}

export function formatHead(head: Head | null): string {
  return head === null ? NO_HEAD : `${head.seq} ${head.hash}`;
}

const NO_HEAD = '-';
const HEAD_FORM = /^(0|[1-9][0-9]{0,15}) ([0-9a-f]{64})$/;

/** Parses what formatHead returned. null if the ledger has no event. Throws UnreadableRecord for any other text. */
export function parseHead(ledgerKey: Uint8Array, text: string): Head | null {
  if (text === NO_HEAD) return null;
  const [, seq, hash = ''] = HEAD_FORM.exec(text) ?? [];
  if (seq === undefined)
    throw unreadableRecord('head', uuidFromBytes(ledgerKey), 'where the ledger ends cannot be read');
  return { seq: Number(seq), hash };
}

function nextSeq(head: Head | null): number {
  return head === null ? 0 : head.seq + 1;
}

const SEQ_BYTES = 6;
const FORM_AT = SEQ_BYTES;
const FINGERPRINT_AT = SEQ_BYTES + 1;
const HASH_BYTES = 32;
const HEX = 1;
const TEXT = 2;

/**
 * The seq, then the fingerprint, as bytes if it is a hash in hex. Command keys are the only part of an append that is
 * spread over its whole table, so smaller values mean fewer pages to write.
 */
export function formatCommandKey({ seq, fingerprint }: FoundCommand): Buffer {
  const isHash = sha256HexForm.test(fingerprint);
  const stored = Buffer.allocUnsafe(FINGERPRINT_AT + (isHash ? HASH_BYTES : Buffer.byteLength(fingerprint)));
  stored.writeUIntBE(seq, 0, SEQ_BYTES);
  stored[FORM_AT] = isHash ? HEX : TEXT;
  stored.write(fingerprint, FINGERPRINT_AT, isHash ? 'hex' : 'utf8');
  return stored;
}

export function parseCommandKey(stored: Uint8Array): FoundCommand {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  return {
    seq: bytes.readUIntBE(0, SEQ_BYTES),
    fingerprint: bytes.toString(bytes[FORM_AT] === HEX ? 'hex' : 'utf8', FINGERPRINT_AT),
  };
}
