/** Messages to a verifying thread: items of a fixed length in one buffer. A key is sent once, with its number. */
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

interface Item {
  readonly keyNumber: number;
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
}

export function writeItem(items: Uint8Array<ArrayBuffer>, at: number, { keyNumber, digest, signature }: Item): void {
  const start = at * itemBytes;
  new DataView(items.buffer).setUint32(start, keyNumber);
  items.set(digest, start + keyNumberBytes);
  items.set(signature, start + keyNumberBytes + digestBytes);
}

/** Reads the item at index `at`. Digest and signature share the memory of `items`. */
export function readItem(items: Uint8Array<ArrayBuffer>, at: number): Item {
  const start = at * itemBytes;
  const signatureAt = start + keyNumberBytes + digestBytes;
  return {
    keyNumber: new DataView(items.buffer).getUint32(start),
    digest: items.subarray(start + keyNumberBytes, signatureAt),
    signature: items.subarray(signatureAt, start + itemBytes),
  };
}
