/**
 * Format of the messages to and from a verifying thread: items of a fixed length in one buffer, so that a batch costs
 * one message. A key is sent once with a number, and items refer to it by that number.
 */
export const digestBytes = 32;
export const signatureBytes = 64;
const keyNumberBytes = 4;
export const itemBytes = keyNumberBytes + digestBytes + signatureBytes;

export interface VerifyingBatch {
  /** Items of a key number (32 bits, big-endian), a digest and a signature. */
  readonly items: Uint8Array<ArrayBuffer>;
  /** Keys that the thread does not have yet: their numbers, and their 32 bytes in base64url. */
  readonly keys: readonly (readonly [number: number, x: string])[];
}

/** One byte an item: 1 if the signature is valid, else 0. */
export type VerifyingResults = Uint8Array<ArrayBuffer>;

/** Writes the item at index `at`. */
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

/** Reads the item at index `at`. Digest and signature share the memory of `items`. */
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
