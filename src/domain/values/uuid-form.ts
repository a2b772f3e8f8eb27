export const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text is a UUID (RFC 9562) in lower case. Upper case is refused, not converted. */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}
