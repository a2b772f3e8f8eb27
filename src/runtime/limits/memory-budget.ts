import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/**
 * What a node holds for its callers, and behind its answers (`queue`). `call`: an HTTP call without its body. The names
 * are values of a metric's label.
 */
export const memoryKinds = ['call', 'request', 'small', 'answer', 'read', 'stream', 'queue', 'peer'] as const;
export type MemoryKind = (typeof memoryKinds)[number];

/** Sent to another thread, so that both count in the same counters. */
export interface SharedMemoryBudget {
  readonly maxBytes: number;
  readonly counters: SharedArrayBuffer;
}

/** Bytes are counted in units of this size, so that 32-bit counters reach 128 GiB. */
export const budgetUnitBytes = 64;
const totalIndex = memoryKinds.length;

/** The request of a unary call of at most so many bytes, which arrived whole, is `small`. Most appends are. */
export const smallRequestBytes = 64 * 1024;
/**
 * The part of the budget that small requests may hold though the budget is full: neither clients that do not end their
 * requests, nor those that do not read, nor long reads keep others from writing.
 */
const smallShare = 1 / 16;

/**
 * Counts what a node holds in memory, with counters that its threads share.
 *
 * Invariant: each `add`, and each `hold` that returned true, is followed by exactly one `release` of the same kind and
 * number of bytes.
 */
export class MemoryBudget {
  readonly maxBytes: number;
  readonly #counters: Int32Array<SharedArrayBuffer>;

  /** `maxBytes`: for all kinds together. */
  constructor(
    maxBytes: number,
    counters = new SharedArrayBuffer((memoryKinds.length + 1) * Int32Array.BYTES_PER_ELEMENT),
  ) {
    this.maxBytes = maxBytes;
    this.#counters = new Int32Array(counters);
  }

  /** The same budget in another thread. */
  static of({ maxBytes, counters }: SharedMemoryBudget): MemoryBudget {
    return new MemoryBudget(maxBytes, counters);
  }

  get shared(): SharedMemoryBudget {
    return { maxBytes: this.maxBytes, counters: this.#counters.buffer };
  }

  /** Counts bytes that are about to be held. false: they would exceed the bound, and are not counted. */
  hold(kind: MemoryKind, bytes: number): boolean {
    this.add(kind, bytes);
    if (this.heldBytes() <= this.maxBytes) return true;
    if (kind === 'small' && this.heldBytes('small') <= this.maxBytes * smallShare) return true;
    this.release(kind, bytes);
    return false;
  }

  /** Counts bytes that are held and cannot be refused any more. */
  add(kind: MemoryKind, bytes: number): void {
    const units = unitsOf(bytes);
    Atomics.add(this.#counters, totalIndex, units);
    Atomics.add(this.#counters, memoryKinds.indexOf(kind), units);
  }

  release(kind: MemoryKind, bytes: number): void {
    const units = unitsOf(bytes);
    Atomics.sub(this.#counters, totalIndex, units);
    Atomics.sub(this.#counters, memoryKinds.indexOf(kind), units);
  }

  /** Rounded up; of one kind, or of all kinds. */
  heldBytes(kind?: MemoryKind): number {
    const index = kind === undefined ? totalIndex : memoryKinds.indexOf(kind);
    return Atomics.load(this.#counters, index) * budgetUnitBytes;
  }
}

/** Rounds up to whole units, so that amounts that were held one by one can be released as a sum. */
export function inUnits(bytes: number): number {
  return unitsOf(bytes) * budgetUnitBytes;
}

function unitsOf(bytes: number): number {
  return Math.ceil(bytes / budgetUnitBytes);
}

/** The largest default: what callers hold comes on top of some 250 MiB of the process itself. */
const defaultMaxBytes = 256 * 1024 * 1024;

/** A quarter of the smallest of memory, container limit and V8's heap limit; at most 256 MiB. */
export function defaultMemoryBudgetBytes(
  machineBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  heapLimitBytes = getHeapStatistics().heap_size_limit,
): number {
  return Math.min(defaultMaxBytes, Math.floor(Math.min(machineBytes, heapLimitBytes) / 4));
}
