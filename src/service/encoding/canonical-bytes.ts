import { LedgerError } from '../../domain/errors.ts';
import type { JsonNode } from '../../domain/json/json.ts';

/**
 * Throws `payload_too_large` if a field's canonical form, which is what is stored, has more than `maxBytes`. `subject`
 * begins the sentence.
 */
export function checkCanonicalBytes(
  { canonical }: JsonNode,
  maxBytes: number,
  { field, subject }: { readonly field: string; readonly subject: string },
): void {
  // A UTF-16 unit has three bytes of UTF-8 at most, so most texts need no counting.
  if (canonical.length * 3 <= maxBytes || Buffer.byteLength(canonical) <= maxBytes) return;
  const message = `${subject} at most ${maxBytes} bytes of canonical JSON.`;
  throw new LedgerError('payload_too_large', message, { field, limit_bytes: maxBytes });
}
