import type { LedgerError } from '../../domain/errors.ts';
import type { Lane } from '../../domain/ledger/command.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { laneBroken } from './refusals.ts';

/** Commands of a forgotten lane are refused, and their client starts a new one. */
const lanesMax = 1_024;
const notBroken = Number.POSITIVE_INFINITY;

/**
 * Keeps the commands of a lane (one client stream to one ledger) in order: a command is accepted only behind the one
 * before it. A new actor knows no lane, so no command overtakes those sent to the actor before it.
 */
export class Lanes {
  readonly #lanes = new RecentMap<string, { last: number; brokenFrom: number }>(lanesMax);

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

  /** No command behind this one may enter or be written any more. */
  breakOff(lane: Lane | null | undefined): void {
    if (lane === null || lane === undefined) return;
    const known = this.#lanes.get(lane.id);
    if (known !== undefined) known.brokenFrom = Math.min(known.brokenFrom, lane.index);
  }

  /** Whether a command before this one was dropped, or may have been: the lane is forgotten. */
  isBroken(lane: Lane | null | undefined): boolean {
    if (lane === null || lane === undefined) return false;
    const known = this.#lanes.get(lane.id);
    return known === undefined ? lane.previous !== null : lane.index > known.brokenFrom;
  }

  #remember(lane: Lane): void {
    this.#lanes.set(lane.id, { last: lane.index, brokenFrom: notBroken });
  }
}
