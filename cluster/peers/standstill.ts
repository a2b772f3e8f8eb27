/** How this node's own turns get on. */
export interface OwnTurns {
  /** That the store has confirmed, ever. */
  readonly stood: number;
  /** Under way. */
  readonly running: number;
}

/** Far longer than a turn takes, and shorter than a silent peer is given. */
const standstillMs = 1_000;

/**
 * Tells whether this node's own turns stand still: some are under way, and the store has confirmed none for a second. As long as it does not answer this node, or this
 * process does not run, that a peer gets nothing carried out says nothing about the peer.
 */
export class Standstill {
  readonly #turns: () => OwnTurns;
  #stood: number;
  #lookedAt: number;
  #movedAt: number;

  /** Times are monotonic, in milliseconds. */
  constructor(turns: () => OwnTurns, now: number) {
    this.#turns = turns;
    this.#stood = turns().stood;
    this.#lookedAt = now;
    this.#movedAt = now;
  }

  /** How long it has been so since the last look. */
  look(now: number): number {
    const sinceMs = now - this.#lookedAt;
    this.#lookedAt = now;
    const { stood, running } = this.#turns();
    if (stood !== this.#stood || running === 0) this.#movedAt = now;
    this.#stood = stood;
    return now - this.#movedAt >= standstillMs ? sinceMs : 0;
  }
}
