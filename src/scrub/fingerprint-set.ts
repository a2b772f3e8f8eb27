import { sha256 } from '../domain/hash.ts';

/** Bytes of a hash that fit a double exactly. */
const fingerprintBytes = 6;
const initialSlots = 1_024;
const loadMax = 0.6;

/**
 * A set of texts, kept as 48 bits of their hash each: 13 to 27 bytes a text, whatever its length. It never says of a text that was added
 * that it was not. Of another one it says so wrongly once in 2^48 / size: a scrub that looks for what should not be there then
 * overlooks one of it.
 */
export class FingerprintSet {
  #slots = new Float64Array(initialSlots).fill(-1);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(text: string): void {
    if (this.#size + 1 > this.#slots.length * loadMax) this.#grow();
    if (put(this.#slots, fingerprintOf(text))) this.#size += 1;
  }

  has(text: string): boolean {
    const fingerprint = fingerprintOf(text);
    return this.#slots[slotOf(this.#slots, fingerprint)] === fingerprint;
  }

  #grow(): void {
    const grown = new Float64Array(this.#slots.length * 2).fill(-1);
    for (const fingerprint of this.#slots) if (fingerprint >= 0) put(grown, fingerprint);
    this.#slots = grown;
  }
}

function fingerprintOf(text: string): number {
  return sha256(text).readUIntBE(0, fingerprintBytes);
}

/** Where the fingerprint is, or would go. There is always a free slot. */
function slotOf(slots: Float64Array, fingerprint: number): number {
  let slot = fingerprint % slots.length;
  while (slots[slot] !== fingerprint && slots[slot] !== -1) slot = (slot + 1) % slots.length;
  return slot;
}

function put(slots: Float64Array, fingerprint: number): boolean {
  const slot = slotOf(slots, fingerprint);
  if (slots[slot] === fingerprint) return false;
  slots[slot] = fingerprint;
  return true;
}
