import type { LedgerEvent } from '../../domain/event/event.ts';

/** What became of a command that was carried out. */
export interface CommandOutcome {
  /** The event that it wrote (of several, the first). */
  readonly event: LedgerEvent;
  /** The event had been written before, by the same command. */
  readonly replayed: boolean;
}
