import type { FaultKind } from '../faults/kinds.ts';

/** The faults of a campaign, in their order. One whose times say nothing comes again behind all others, at most as many as were planned. */
export class Agenda {
  readonly #left: FaultKind[];
  readonly #plannedCount: number;
  #againCount = 0;

  constructor(plan: readonly FaultKind[]) {
    this.#left = [...plan];
    this.#plannedCount = plan.length;
  }

  /** How many there will be, those that were carried out among them. */
  get length(): number {
    return this.#plannedCount + this.#againCount;
  }

  next(): FaultKind | undefined {
    return this.#left.shift();
  }

  /** Whether it comes again. */
  again(kind: FaultKind): boolean {
    if (this.#againCount === this.#plannedCount) return false;
    this.#againCount += 1;
    this.#left.push(kind);
    return true;
  }
}
