import type { Clock } from '../../runtime/clock/clock.ts';
import { type BatchCounts, noBatches } from '../batching/batch-counts.ts';
import { type BatchPace, BatchPacing } from '../batching/batch-pacing.ts';
import { DeadlineWatch } from '../inbox/deadline-watch.ts';
import { RecentKeysMemory } from './recent-keys-memory.ts';

/** What the ledger actors of a node share. */
export interface SharedActorState {
  readonly watch: DeadlineWatch;
  readonly pacing: Pick<BatchPacing, 'begin' | 'end'>;
  readonly pace: Pick<BatchPace, 'quietMs' | 'crowdedMax'>;
  readonly batches: { -readonly [Count in keyof BatchCounts]: number };
  readonly recentKeys: RecentKeysMemory;
}

export function sharedActorState(clock: Clock, pace: BatchPace): SharedActorState {
  return {
    watch: new DeadlineWatch(clock),
    pacing: new BatchPacing(clock, pace),
    pace,
    batches: { ...noBatches },
    recentKeys: new RecentKeysMemory(),
  };
}
