import { randomBytes } from 'node:crypto';
import { sha256Buffer } from '../../domain/keys/hash-buffer.ts';

/** Bytes of a hash that a double holds exactly. */
const fingerprintBytes = 6;
const initialSlots = 1_024;
const loadMax = 0.6;
/** Drawn for each process, so that nobody can make a text whose fingerprint is that of another one. */
const salt = randomBytes(16).toString('base64');

/**
 * A set of texts that keeps 48 bits of each text's salted hash: 13 to 27 bytes a text. It also finds a text that was
 * not added, with a probability of size / 2^48: a scrub that looks for extra data then overlooks one.
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

  /** How many texts of this set `other` does not have. */
  countMissingIn(other: FingerprintSet): number {
    let count = 0;
    for (const fingerprint of this.#slots)
      if (fingerprint >= 0 && other.#slots[slotOf(other.#slots, fingerprint)] !== fingerprint) count += 1;
    return count;
  }

  #grow(): void {
    const grown = new Float64Array(this.#slots.length * 2).fill(-1);
    for (const fingerprint of this.#slots) if (fingerprint >= 0) put(grown, fingerprint);
    this.#slots = grown;
  }
}

function fingerprintOf(text: string): number {
  return sha256Buffer(salt + text).readUIntBE(0, fingerprintBytes);
}

/** The slot that holds the fingerprint, or the free slot for it. There is always a free slot. */
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
