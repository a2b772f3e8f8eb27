/**
 * How signatures travel to a verifying thread and verdicts back: items of a fixed length in one buffer, so that a batch costs one
 * message. A key is sent once, under a number, and named by it from then on.
 */
export const digestBytes = 32;
export const signatureBytes = 64;
const keyNumberBytes = 4;
export const itemBytes = keyNumberBytes + digestBytes + signatureBytes;

export interface VerifyingBatch {
  /** Items of a key number (32 bits, big-endian), a digest and a signature. */
  readonly items: Uint8Array<ArrayBuffer>;
  /** Keys that the thread does not know yet: their numbers, and their 32 bytes in base64url. */
  readonly keys: readonly (readonly [number: number, x: string])[];
}

/** A byte an item: 1 where the signature verifies. */
export type VerifyingVerdicts = Uint8Array<ArrayBuffer>;

/** Puts an item at its place. */
export function writeItem(
  items: Uint8Array,
  at: number,
  keyNumber: number,
  digest: Uint8Array,
  signature: Uint8Array,
): void {
  const start = at * itemBytes;
  items[start] = keyNumber >>> 24;
  items[start + 1] = keyNumber >>> 16;
  items[start + 2] = keyNumber >>> 8;
  items[start + 3] = keyNumber;
  items.set(digest, start + keyNumberBytes);
  items.set(signature, start + keyNumberBytes + digestBytes);
}

/** Reads one back; digest and signature share the memory of the items. */
export function readItem(
  items: Uint8Array,
  at: number,
): { readonly keyNumber: number; readonly digest: Uint8Array; readonly signature: Uint8Array } {
  const start = at * itemBytes;
  const keyNumber = new DataView(items.buffer, items.byteOffset + start).getUint32(0);
  const digestAt = start + keyNumberBytes;
  const signatureAt = digestAt + digestBytes;
  return {
    keyNumber,
    digest: items.subarray(digestAt, signatureAt),
    signature: items.subarray(signatureAt, start + itemBytes),
  };
}
