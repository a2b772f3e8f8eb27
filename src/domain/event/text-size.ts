/** Most bytes of an event's payload and of what was signed in its place, together, as canonical JSON. */
export const eventTextsBytesMax = 572 * 1024;

/** Whether an event has more than `eventTextsBytesMax`. Both texts are canonical JSON. */
export function areTextsTooLong(payload: string, actorSigPayload: string | null): boolean {
  const signed = actorSigPayload ?? '';
  // A UTF-16 unit has three bytes of UTF-8 at most, so most texts need no counting.
  if ((payload.length + signed.length) * 3 <= eventTextsBytesMax) return false;
  const encoder = new TextEncoder();
  return encoder.encode(payload).length + encoder.encode(signed).length > eventTextsBytesMax;
}
