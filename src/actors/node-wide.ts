import type { Clock } from './clock.ts';
import { DeadlineWatch } from './deadline-watch.ts';
import { MarksMemory } from './marks-memory.ts';
import { noTurns, type TurnCounts } from './turn-counts.ts';
import { type TurnPace, TurnPacing } from './turn-pacing.ts';

/** What the ledgers of a node have in common while they work. */
export interface NodeWide {
  readonly watch: DeadlineWatch;
  readonly pacing: Pick<TurnPacing, 'begin' | 'end'>;
  readonly pace: Pick<TurnPace, 'quietMs' | 'crowdedMax'>;
  readonly turns: { -readonly [Count in keyof TurnCounts]: number };
  readonly marks: MarksMemory;
}

export function nodeWide(clock: Clock, pace: TurnPace): NodeWide {
  return {
    watch: new DeadlineWatch(clock),
    pacing: new TurnPacing(clock, pace),
    pace,
    turns: { ...noTurns },
    marks: new MarksMemory(),
  };
}
