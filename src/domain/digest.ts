import { sha256 } from './hash.ts';

/**
 * What an actor signs (spec, Authentication 5): SHA-256 of event type, 0x00, ledger id, 0x00, canonical JSON of the
 * signed payload, in UTF-8. 32 bytes. TypeError for a NUL in the first two, which would let one text be read as another.
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
