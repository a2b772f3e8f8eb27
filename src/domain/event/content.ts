import { platformCrypto } from '../keys/crypto.ts';
import { sha256, sha256Hex } from '../keys/hash.ts';
import { toHex } from '../keys/hex.ts';
import type { EventContent } from './event.ts';

const eventPrefixHex = toHex(new TextEncoder().encode('svc-event-v1\0'));
const authorityPrefixHex = toHex(new TextEncoder().encode('svc-authority-v1\0'));

/**
 * The RFC 8785 form of what content_hash covers (docs/verifying.md, section 2): keys in their sorted order.
 * JSON.stringify writes a string exactly as RFC 8785 asks.
 */
export function contentJson(content: EventContent): string {
  const master = content.master;
  return (
    `{"actor_id":${text(content.actorId)},"actor_sig":${text(content.actorSig)}` +
    `,"actor_sig_payload_hash":${text(content.actorSigPayloadHash)},"actor_type":${text(content.actorType)}` +
    `,"caused_by_hash":${text(content.causedByHash)},"created_at":${text(content.createdAt)}` +
    `,"event_type":${text(content.eventType)},"id":${text(content.id)},"ledger_id":${text(content.ledgerId)}` +
    `,"master":${master === null ? 'null' : `{"id":${text(master.id)},"prev_hash":${text(master.prevHash)},"seq":${master.seq}}`}` +
    `,"payload_hash":${text(content.payloadHash)},"seq":${content.seq},"signing_key_id":${text(content.signingKeyId)}}`
  );
}

/** The JSON of a string or null. */
export function text(value: string | null): string {
  return value === null ? 'null' : JSON.stringify(value);
}

export function contentHash(canonicalContent: string): string {
  return sha256Hex(canonicalContent);
}

/** SHA-256("svc-event-v1" 0x00 ‖ hash of the previous event ‖ content hash), hex. `prevHash` is '' for GENESIS. */
export function eventHash(prevHash: string, contentHashHex: string): string {
  return sha256Hex(platformCrypto.fromHex(eventPrefixHex + prevHash + contentHashHex));
}

/** SHA-256("svc-authority-v1" 0x00 ‖ hash), 32 bytes. `eventHashHex` is the chain hash. */
export function authorityDigest(eventHashHex: string): Uint8Array {
  return sha256(platformCrypto.fromHex(authorityPrefixHex + eventHashHex));
}
