import { isSameRun, type Member, type Run } from './members.ts';

export function idIsTaken({ id, address, startedAt }: Run): string {
  return `NODE_ID ${id} is in use at ${address} by a process started ${startedAt}: give every node a NODE_ID of its own; after a crash it is free within seconds`;
}

/** The announcements of this run that followed each other without a break, by the clock of the list, ms. */
interface Announced {
  readonly since: number;
  readonly until: number;
}

/**
 * Checks whether another run has this node's id. A dead run, for example before a restart, is seen for at most
 * `memberTtlMs`. If it is seen for longer, it is alive, and one alarm is raised.
 *
 * While this run's own announcement is valid, no node can announce another one. So what is listed under its id all the
 * same was written by nobody of the cluster, and does not count. Only if the list was emptied can another node have
 * come first. So that the first of the two takes its id back then, and the other does not, a run holds its id once its
 * announcements reach, without a break, over more than twice the time of a member.
 */
export class DuplicateNodeCheck {
  readonly #self: Run;
  readonly #memberTtlMs: number;
  readonly #monotonicMs: () => number;
  readonly #alarmed: (sentence: string) => void;
  #found: Run | null = null;
  #announced: Announced | null = null;
  /** Until when the last announcement is valid at least. Monotonic, ms. */
  #validUntil = Number.NEGATIVE_INFINITY;
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

  /** Until when this run holds its id, by the clock of the list, ms. 0: it does not. */
  get heldUntil(): number {
    const { since, until } = this.#announced ?? { since: 0, until: 0 };
    return until - since > 2 * this.#memberTtlMs ? until : 0;
  }

  /** Call it with the result of each announcement. `sentAt`: monotonic, ms. */
  announced(until: number | null, sentAt: number): void {
    const before = this.#announced;
    const at = (until ?? 0) - this.#memberTtlMs;
    const isUnbroken = before !== null && at < before.until;
    // Where the clock of the list has gone back, its new time counts from now on: otherwise the run would not hold its
    // id for as long as the clock went back.
    const since = isUnbroken ? Math.min(before.since, at) : at;
    this.#announced = until === null ? null : { since, until };
    this.#validUntil = sentAt + this.#memberTtlMs;
  }

  /** Call it after each reading of the members. `readAt`: when the reading began, monotonic, ms. */
  look(members: readonly Member[], readAt: number): Run | null {
    this.#lookedAt = readAt;
    const found = members.find(({ id }) => id === this.#self.id);
    const isHeld = this.heldUntil > 0 && this.#monotonicMs() < this.#validUntil;
    if (found === undefined || isSameRun(found, this.#self) || isHeld) {
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
