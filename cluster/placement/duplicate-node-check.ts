import { isSameRun, type Member, type Run } from './members.ts';

export function idIsTaken({ id, address, startedAt }: Run): string {
  return `NODE_ID ${id} is in use at ${address} by a process started ${startedAt}: give every node a NODE_ID of its own; after a crash it is free within seconds`;
}

/**
 * Checks whether another run has this node's id. A dead run, for example before a restart, is seen for at most
 * `memberTtlMs`. If it is seen for longer, it is alive, and one alarm is raised.
 */
export class DuplicateNodeCheck {
  readonly #self: Run;
  readonly #memberTtlMs: number;
  readonly #monotonicMs: () => number;
  readonly #alarmed: (sentence: string) => void;
  #found: Run | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When the first look found the other run. Monotonic, ms. */
  #since: number | null = null;
  #isReported = false;

  constructor(self: Run, memberTtlMs: number, monotonicMs: () => number, alarmed: (sentence: string) => void) {
    this.#self = self;
    this.#memberTtlMs = memberTtlMs;
    this.#monotonicMs = monotonicMs;
    this.#alarmed = alarmed;
  }

  /** The other run with this node's id, or null. A reading older than `memberTtlMs` does not count any more. */
  get found(): Run | null {
    return this.#monotonicMs() - this.#lookedAt < this.#memberTtlMs ? this.#found : null;
  }

  /** Call it after each reading of the members. `readAt`: when the reading began, monotonic, ms. */
  look(members: readonly Member[], readAt: number): Run | null {
    this.#lookedAt = readAt;
    const found = members.find(({ id }) => id === this.#self.id);
    if (found === undefined || isSameRun(found, this.#self)) {
      this.#found = null;
      this.#since = null;
      this.#isReported = false;
      return null;
    }
    this.#found = found;
    this.#since ??= readAt;
    if (!this.#isReported && readAt - this.#since >= this.#memberTtlMs) {
      this.#isReported = true;
      this.#alarmed(idIsTaken(found));
    }
    return found;
  }
}
