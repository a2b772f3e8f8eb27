import { createHash } from 'node:crypto';
import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../../domain/uuid.ts';

/** Random bytes on demand; never the same twice. */
export type Random = (lengthBytes: number) => Buffer;

/** Where a call takes its ids and secrets from. */
export interface Entropy {
  newId(): string;
  randomBytes(lengthBytes: number): Buffer;
}

export const SEED_BYTES = 32;
const POOL_BYTES = 8192;

/**
 * The same source asked for larger pieces, since one small piece costs as much as a large one. No byte is given twice.
 */
export function pooledRandom(random: Random): Random {
  let pool = random(POOL_BYTES);
  let used = 0;
  return (lengthBytes) => {
    if (lengthBytes > POOL_BYTES / 8) return random(lengthBytes);
    if (used + lengthBytes > POOL_BYTES) {
      pool = random(POOL_BYTES);
      used = 0;
    }
    const piece = pool.subarray(used, used + lengthBytes);
    used += lengthBytes;
    return piece;
  };
}

/** Ids of this time, and bytes, from a random source. */
export function freshEntropy(random: Random, nowMs: number): Entropy {
  return {
    newId: () => uuidV7(nowMs, random(UUID_V7_RANDOM_BYTES)),
    randomBytes: (lengthBytes) => Buffer.from(random(lengthBytes)),
  };
}

/**
 * Ids of this time, and bytes, that are the same sequence for the same seed: a call that is run again makes the same
 * things again. The stream is SHA-256 of label, seed and a counter, block by block.
 */
export function seededEntropy(seed: Uint8Array, nowMs: number): Entropy {
  let block = Buffer.alloc(0);
  let counter = 0;
  const take: Random = (lengthBytes) => {
    const piece = Buffer.alloc(lengthBytes);
    for (let at = 0; at < lengthBytes; ) {
      if (block.length === 0) {
        const number = Buffer.alloc(8);
        number.writeBigUInt64BE(BigInt(counter));
        counter += 1;
        block = createHash('sha256').update('svc-call-seed-v1\0').update(seed).update(number).digest();
      }
      const copied = block.copy(piece, at);
      block = block.subarray(copied);
      at += copied;
    }
    return piece;
  };
  return { newId: () => uuidV7(nowMs, take(UUID_V7_RANDOM_BYTES)), randomBytes: take };
}
