import { hash } from 'node:crypto';
import { sha256, sha256Hex } from '../keys/hash.ts';
import type { EventContent } from './event.ts';

const eventPrefix = Buffer.from('svc-event-v1\0', 'ascii');
const authorityPrefix = Buffer.from('svc-authority-v1\0', 'ascii');

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
  const message = Buffer.allocUnsafe(eventPrefix.length + prevHash.length / 2 + 32);
  eventPrefix.copy(message);
  message.write(prevHash, eventPrefix.length, 'hex');
  message.write(contentHashHex, eventPrefix.length + prevHash.length / 2, 'hex');
  return hash('sha256', message, 'hex');
}

/** SHA-256("svc-authority-v1" 0x00 ‖ hash), 32 bytes. `eventHashHex` is the chain hash. */
export function authorityDigest(eventHashHex: string): Buffer {
  return sha256(Buffer.concat([authorityPrefix, Buffer.from(eventHashHex, 'hex')]));
}
