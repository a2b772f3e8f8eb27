/**
 * Strict standard base64 (RFC 4648, section 4), so that a value has one spelling. null: base64url, missing padding,
 * white space, stray bits at the end (`AB==`), and any length other than `lengthBytes`.
 */
export function decodeBase64(text: string, lengthBytes: number): Buffer | null {
  if (text.length !== Math.ceil(lengthBytes / 3) * 4) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === lengthBytes && bytes.toString('base64') === text ? bytes : null;
}
