import { platformCrypto } from '../../domain/keys/crypto.ts';
import { sha256HexForm } from '../../domain/keys/hash.ts';
import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { CompactRange } from '../../domain/log/compact-range.ts';
import type { LogKind } from '../../domain/log/origin.ts';
import { HASH_BYTES, isSameHash, leafHash } from '../../domain/log/tree.ts';
import type { Event } from '../event.ts';
import type { IndexedRecord } from '../proofs/proof-reading.ts';

/** So many events behind the range are kept, 256 KiB. A checkpoint that covers fewer than the range is not compared. */
const LEAVES_MAX = 8_192;

/** Hashes side by side: single arrays would take five times the memory. */
class HashList {
  #bytes = new Uint8Array(0);
  length = 0;

  at(index: number): Uint8Array {
    return this.#bytes.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }

  push(hash: Uint8Array): void {
    const end = this.length * HASH_BYTES;
    if (end === this.#bytes.length) {
      const larger = new Uint8Array(Math.max(16 * HASH_BYTES, 2 * end));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(hash, end);
    this.length += 1;
  }

  /** Drops the first ones. */
  drop(count: number): void {
    this.length -= count;
    this.#bytes = this.#bytes.slice(count * HASH_BYTES);
  }
}

/**
 * The tree over the events of a ledger or a master up to the last one that was handed out, to compare checkpoints with.
 * Once an event is missing, or a checkpoint was contradicted, nothing is compared any more.
 */
export class FollowedTree {
  readonly #kind: LogKind;
  /** null: it is not known. */
  #range: CompactRange | null = new CompactRange();
  /** Of the events behind the range. */
  readonly #leaves = new HashList();
  /** The last event before these leaves, while the range is not known. */
  #behind: IndexedRecord | null = null;
  /** It covers events that are still to come. */
  #next: Checkpoint | null = null;
  #size = 0;
  #isLost = false;

  constructor(kind: LogKind) {
    this.#kind = kind;
  }

  /** Begins behind an event, whose proof is to be learnt. */
  beginBehind(event: Event): void {
    this.#range = null;
    this.#leaves.drop(this.#leaves.length);
    const index = this.#indexOf(event);
    this.#behind = { index, record: this.#recordOf(event) };
    this.#size = index + 1;
  }

  /** The record whose proof at its own place `learn` takes. null: none is needed. */
  get toBeProved(): IndexedRecord | null {
    return this.#isLost ? null : this.#behind;
  }

  /** `hashes`: of the verified proof that the record is the last one of the tree up to it, from its sibling up. */
  learn(proved: IndexedRecord, hashes: readonly Uint8Array[]): void {
    if (proved !== this.toBeProved) return;
    this.#behind = null;
    this.#range = new CompactRange(proved.index, hashes.toReversed());
    this.#range.append(leafHash(proved.record));
  }

  /** Takes the next event. Returns the checkpoint that it contradicts; null if there is none. */
  take(event: Event): Checkpoint | null {
    if (this.#indexOf(event) !== this.#size || !sha256HexForm.test(this.#hashOf(event))) this.#lose();
    if (this.#isLost) return null;
    this.#leaves.push(leafHash(this.#recordOf(event)));
    this.#size += 1;
    if (this.#leaves.length === LEAVES_MAX) this.#forget(event);
    const next = this.#next;
    if (next?.size !== this.#size) return null;
    this.#next = null;
    return this.compare(next);
  }

  /**
   * Returns the checkpoint if the events contradict it. If it covers events to come, it is compared with them later.
   */
  compare(checkpoint: Checkpoint): Checkpoint | null {
    const { size, root } = checkpoint;
    const range = this.#range;
    if (range === null || this.#isLost || size < range.size) return null;
    if (size > this.#size) {
      if (this.#next === null || size < this.#next.size) this.#next = checkpoint;
      return null;
    }
    this.#extend(range, size - range.size);
    if (isSameHash(range.root(), root)) return null;
    this.#lose();
    return checkpoint;
  }

  #indexOf({ seq, masterSeq }: Event): number {
    return this.#kind === 'ledger' ? seq : (masterSeq ?? -1);
  }

  #hashOf({ hash, contentHash }: Event): string {
    return this.#kind === 'ledger' ? hash : contentHash;
  }

  #recordOf(event: Event): Uint8Array {
    return platformCrypto.fromHex(this.#hashOf(event));
  }

  /** `event`: the last one. */
  #forget(event: Event): void {
    if (this.#range === null) this.beginBehind(event);
    else this.#extend(this.#range, LEAVES_MAX / 2);
  }

  #extend(range: CompactRange, leaves: number): void {
    for (let at = 0; at < leaves; at += 1) range.append(this.#leaves.at(at));
    this.#leaves.drop(leaves);
  }

  #lose(): void {
    this.#isLost = true;
    this.#leaves.drop(this.#leaves.length);
    this.#next = null;
  }
}
