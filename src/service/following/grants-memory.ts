import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';

/** The part of the node's budget that the grants of all followers may use. */
const share = 1 / 4;

interface GrantHolder {
  readonly actorId: string;
  /** Has its streams end as `overloaded`, after which it releases what it holds. */
  endAsOverloaded(): void;
}

/**
 * Counts what the grants of the followers of a node hold. If they hold as much as they may, an actor above its equal
 * share is refused. For an actor below it, the streams of the actor with most end.
 */
export class GrantsMemory {
  readonly #memory: MemoryBudget;
  readonly #actors: FairShare<string>;
  readonly #holders = new Map<string, Set<GrantHolder>>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
    this.#actors = new FairShare(memory.maxBytes * share, (actorId) => {
      for (const holder of this.#holders.get(actorId) ?? []) holder.endAsOverloaded();
    });
  }

  /** false: they are refused, and are not counted. */
  hold(holder: GrantHolder, bytes: number): boolean {
    const { actorId } = holder;
    this.#actors.add(actorId, bytes);
    if (!this.#actors.makeRoom(actorId) || !this.#memory.hold('stream', bytes)) {
      this.#actors.add(actorId, -bytes);
      return false;
    }
    const holders = this.#holders.get(actorId) ?? new Set();
    this.#holders.set(actorId, holders.add(holder));
    return true;
  }

  /** Releases all that the holder holds. */
  release(holder: GrantHolder, bytes: number): void {
    const { actorId } = holder;
    this.#actors.add(actorId, -bytes);
    this.#memory.release('stream', bytes);
    const holders = this.#holders.get(actorId);
    holders?.delete(holder);
    if (holders?.size === 0) this.#holders.delete(actorId);
  }
}
