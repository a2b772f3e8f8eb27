import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';

/** The part of the node's budget that the grants of all followers may use. */
const share = 1 / 4;

interface GrantHolder {
  readonly actorId: string;
  readonly heldBytes: number;
  /** Has its streams end as `overloaded`, after which it releases what it holds. */
  endAsOverloaded(): void;
}

/**
 * Counts what the grants of the followers of a node hold. If they hold as much as they may, an actor above its equal
 * share is refused. For an actor below it, streams of the actor with most end.
 */
export class GrantsMemory {
  readonly #memory: MemoryBudget;
  readonly #actors: FairShare<string>;
  readonly #holders = new Map<string, Set<GrantHolder>>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
    this.#actors = new FairShare(memory.maxBytes * share, (actorId) => this.#makeRoom(actorId));
  }

  /** false: they are refused, and are not counted. */
  hold(holder: GrantHolder, bytes: number): boolean {
    // First, since nobody must end for one that is refused.
    if (!this.#memory.hold('stream', bytes)) return false;
    if (!this.#share(holder, bytes)) {
      this.#memory.release('stream', bytes);
      return false;
    }
    const { actorId } = holder;
    const holders = this.#holders.get(actorId) ?? new Set();
    this.#holders.set(actorId, holders.add(holder));
    return true;
  }

  /** More bytes of a holder. They are refused for the sake of other holders alone, not if the whole budget is full. */
  grow(holder: GrantHolder, bytes: number): boolean {
    if (!this.#share(holder, bytes)) return false;
    this.#memory.add('stream', bytes);
    return true;
  }

  #share({ actorId }: GrantHolder, bytes: number): boolean {
    this.#actors.add(actorId, bytes);
    if (this.#actors.makeRoom(actorId)) return true;
    this.#actors.add(actorId, -bytes);
    return false;
  }

  /** Ends the largest holders of an actor that free enough. They still count until they have released it. */
  #makeRoom(actorId: string): void {
    let excess = this.#actors.total - this.#actors.max;
    const largestFirst = [...(this.#holders.get(actorId) ?? [])].sort((one, other) => other.heldBytes - one.heldBytes);
    for (const holder of largestFirst) {
      if (excess <= 0) return;
      excess -= holder.heldBytes;
      holder.endAsOverloaded();
    }
  }

  /** Releases all that the holder holds. */
  release(holder: GrantHolder): void {
    const { actorId, heldBytes } = holder;
    this.#actors.add(actorId, -heldBytes);
    this.#memory.release('stream', heldBytes);
    const holders = this.#holders.get(actorId);
    holders?.delete(holder);
    if (holders?.size === 0) this.#holders.delete(actorId);
  }
}
