import type { Lane } from '../domain/command.ts';
import type { LedgerError } from '../domain/errors.ts';
import { RecentMap } from '../domain/recent-map.ts';
import { laneBroken } from './refusals.ts';

/** Lanes that one ledger remembers: what is in a forgotten one is refused, and it starts anew. */
const lanesMax = 1_024;
const notBroken = Number.POSITIVE_INFINITY;

/**
 * Keeps commands of one lane in order within one ledger's actor: a command enters only behind the one before it, and none once an earlier
 * one was dropped. An actor that was made anew knows no lane, so that what was sent to its forerunner is not overtaken.
 */
export class Lanes {
  readonly #lanes = new RecentMap<string, { last: number; brokenFrom: number }>(lanesMax);

  /** null: the command may enter. */
  enter(lane: Lane | null | undefined): LedgerError | null {
    if (lane === null || lane === undefined) return null;
    const known = this.#lanes.get(lane.id);
    if (lane.previous === null) {
      this.#remember(lane);
      return null;
    }
    if (known === undefined || lane.index > known.brokenFrom || known.last !== lane.previous) return laneBroken();
    known.last = lane.index;
    return null;
  }

  /** Nothing behind this command may enter or be written any more. What is before it goes on. */
  breakOff(lane: Lane | null | undefined): void {
    if (lane === null || lane === undefined) return;
    const known = this.#lanes.get(lane.id);
    if (known !== undefined) known.brokenFrom = Math.min(known.brokenFrom, lane.index);
  }

  /** Whether one before this command was dropped. Of a forgotten lane that may be so. */
  isBroken(lane: Lane | null | undefined): boolean {
    if (lane === null || lane === undefined) return false;
    const known = this.#lanes.get(lane.id);
    return known === undefined ? lane.previous !== null : lane.index > known.brokenFrom;
  }

  #remember(lane: Lane): void {
    this.#lanes.set(lane.id, { last: lane.index, brokenFrom: notBroken });
  }
}
