import { isSameRun, type Member, type Run } from './members.ts';

/** What an operator does about two nodes under one id. */
export function idIsTaken({ id, address, startedAt }: Run): string {
  return `NODE_ID ${id} is in use at ${address} by a process started ${startedAt}: give every node a NODE_ID of its own; after a crash it is free within seconds`;
}

/**
 * Looks whether another run has this node's id: where it died, as before a restart, only until it was not heard of for `memberTtlMs`;
 * beyond that it lives, which is told once.
 */
export class DuplicateNodeCheck {
  readonly #self: Run;
  readonly #memberTtlMs: number;
  readonly #monotonicMs: () => number;
  readonly #alarmed: (sentence: string) => void;
  #standing: Run | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Monotonic, of the first look that found it. */
  #since: number | null = null;
  #told = false;

  constructor(self: Run, memberTtlMs: number, monotonicMs: () => number, alarmed: (sentence: string) => void) {
    this.#self = self;
    this.#memberTtlMs = memberTtlMs;
    this.#monotonicMs = monotonicMs;
    this.#alarmed = alarmed;
  }

  /** Who has the id instead of this node, as last read. A dead run counts no longer than its time, though no look came after that one. */
  get standing(): Run | null {
    return this.#monotonicMs() - this.#lookedAt < this.#memberTtlMs ? this.#standing : null;
  }

  /** Answers who has the id instead of this node. `readAt`: monotonic, from before the members were read. */
  look(members: readonly Member[], readAt: number): Run | null {
    this.#lookedAt = readAt;
    const standing = members.find(({ id }) => id === this.#self.id);
    if (standing === undefined || isSameRun(standing, this.#self)) {
      this.#standing = null;
      this.#since = null;
      this.#told = false;
      return null;
    }
    this.#standing = standing;
    this.#since ??= readAt;
    if (!this.#told && readAt - this.#since >= this.#memberTtlMs) {
      this.#told = true;
      this.#alarmed(idIsTaken(standing));
    }
    return standing;
  }
}
