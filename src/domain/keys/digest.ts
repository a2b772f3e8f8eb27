import { sha256 } from './hash.ts';

/**
 * The digest that an actor signs (docs/verifying.md, section 1): SHA-256 of event type, 0x00, ledger id, 0x00, and the
 * canonical JSON of the signed payload, in UTF-8. 32 bytes. TypeError for a NUL in the event type or the ledger id:
 * with one, two different inputs could have the same bytes.
 */
export function sigDigest(eventType: string, ledgerId: string, canonicalPayload: string): Buffer {
  if (eventType.includes('\0') || ledgerId.includes('\0')) throw new TypeError('NUL in an event type or ledger id');
  const head = `${eventType}\0${ledgerId}\0`;
  const headBytes = Buffer.byteLength(head);
  const message = Buffer.allocUnsafe(headBytes + Buffer.byteLength(canonicalPayload));
  message.write(head);
  message.write(canonicalPayload, headBytes);
  return sha256(message);
}
