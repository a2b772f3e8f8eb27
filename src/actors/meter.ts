export type ClaimReason = 'activation' | 'fenced' | 'unknown_outcome' | 'certainty';

/** What the actors tell the metrics. */
export interface ActorMeter {
  committed(events: number, seconds: number): void;
  answered(result: 'written' | 'replayed' | 'refused'): void;
  claimed(reason: ClaimReason): void;
  fenced(): void;
  damaged(): void;
  unknownOutcome(resolution: 'written' | 'not_written' | 'unsettled'): void;
  activated(seconds: number): void;
}
