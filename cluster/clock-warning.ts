import { clockOffMaxMs } from './clock-check.ts';

type ClockState = 'right' | 'refused' | 'store';

/** Raises one alarm each time that the clock of this node, or of the store, becomes wrong. */
export class ClockWarning {
  readonly #alarmed: (sentence: string) => void;
  #reported: ClockState = 'right';

  constructor(alarmed: (sentence: string) => void) {
    this.#alarmed = alarmed;
  }

  /**
   * Call it after each comparison of the clocks. `aheadMs`: how far this node is ahead of the store; null if not known
   * yet. `isRight`: whether this node may decide.
   */
  look(aheadMs: number | null, isRight: boolean): void {
    if (aheadMs === null) return;
    const state = stateOf(aheadMs, isRight);
    if (state !== this.#reported && state !== 'right') this.#alarmed(sentenceOf(state, aheadMs));
    this.#reported = state;
  }
}

function stateOf(aheadMs: number, isRight: boolean): ClockState {
  if (!isRight) return 'refused';
  return Math.abs(aheadMs) > clockOffMaxMs ? 'store' : 'right';
}

function sentenceOf(state: Exclude<ClockState, 'right'>, aheadMs: number): string {
  const offMs = Math.abs(aheadMs);
  return state === 'refused'
    ? `the clock of this node is ${offMs} ms off the clock of the store: it decides nothing and gives its shards away until time synchronisation is mended`
    : `the clock of the store is ${offMs} ms off the clocks of all nodes, which agree: mend the time synchronisation of Cassandra; the nodes go on by their own clocks`;
}
