export type ClaimReason = 'activation' | 'fenced' | 'unknown_outcome' | 'certainty';

/** A batch of which the store did not say whether it wrote it. */
export interface DoubtfulBatch {
  readonly ledgerId: string;
  /** Of its first event. */
  readonly seq: number;
  readonly events: number;
  /** Of the calls whose events it has. If it stays unsettled, also of those that it refuses. */
  readonly requestIds: readonly string[];
  /** What the store said instead. */
  readonly cause: unknown;
}

export interface ActorMeter {
  committed(events: number, seconds: number): void;
  answered(result: 'written' | 'replayed' | 'refused'): void;
  claimed(reason: ClaimReason): void;
  fenced(): void;
  damaged(): void;
  unknownOutcome(resolution: 'written' | 'not_written' | 'unsettled', batch: DoubtfulBatch): void;
  activated(seconds: number): void;
}
