import { isSameRun, type Member, type Run } from './members.ts';

/** Returns a sentence that tells an operator what to do about two nodes with one id. */
export function idIsTaken({ id, address, startedAt }: Run): string {
  return `NODE_ID ${id} is in use at ${address} by a process started ${startedAt}: give every node a NODE_ID of its own; after a crash it is free within seconds`;
}

/**
 * Checks whether another run has this node's id. A run that has died, for example before a restart, is seen for at most
 * `memberTtlMs`. A run that is seen for longer is alive: then one alarm is raised.
 */
export class DuplicateNodeCheck {
  readonly #self: Run;
  readonly #memberTtlMs: number;
  readonly #monotonicMs: () => number;
  readonly #alarmed: (sentence: string) => void;
  #standing: Run | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When the first look found the other run. Monotonic, ms. */
  #since: number | null = null;
  #told = false;

  constructor(self: Run, memberTtlMs: number, monotonicMs: () => number, alarmed: (sentence: string) => void) {
    this.#self = self;
    this.#memberTtlMs = memberTtlMs;
    this.#monotonicMs = monotonicMs;
    this.#alarmed = alarmed;
  }

  /**
   * The run that has this node's id, as last read, or null. A reading older than `memberTtlMs` does not count any more.
   */
  get standing(): Run | null {
    return this.#monotonicMs() - this.#lookedAt < this.#memberTtlMs ? this.#standing : null;
  }

  /**
   * Call it after each reading of the members. Returns the other run that has this node's id, or null. `readAt`: when
   * the reading began, monotonic, ms.
   */
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
