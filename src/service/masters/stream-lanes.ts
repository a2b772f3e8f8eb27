import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { PreparedCommand } from '../idempotency/submit-once.ts';

/** A KB each. More than the events that can be open on a stream. */
const lanesMax = 1_024;

/** An event of a stream whose outcome is not sent yet. */
export interface Promised {
  readonly clientIndex: bigint;
  /** Length of its text, in characters. */
  readonly length: number;
  /** What the event counts for in the memory budget. */
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly prepared: Promise<PreparedCommand>;
}

/** The events of one ledger on a stream, sent to its actor and answered in the order of the stream. */
export interface LedgerLane {
  /** null for the lane of all events whose masters do not exist. None of these is sent. */
  readonly id: string | null;
  readonly waiting: Promised[];
  sending: boolean;
  /** Sent and not answered yet. There is one queue for the lane, so that no event is answered before an earlier one. */
  readonly outcomes: { readonly promised: Promised; readonly outcome: Promise<CommandOutcome> }[];
  answering: boolean;
  lastSent: number | null;
  open: number;
  /** An event failed with a retryable error: no more events of this ledger are sent. */
  failed: boolean;
  /** Client index of the first event that failed so. Set once all events before it are answered. */
  resumeFrom: bigint | null;
}

/** The lanes of a stream. When there is no room idle lanes are forgotten. A failed lane stays until the stream ends. */
export class LedgerLanes {
  /** Unique to this stream. */
  readonly #id: string;
  readonly #lanes = new Map<string | null, LedgerLane>();

  constructor(id: string) {
    this.#id = id;
  }

  /** `ledgerId` is null for events whose masters do not exist. Throws `unavailable` if too many lanes have failed. */
  of(ledgerId: string | null): LedgerLane {
    let lane = this.#lanes.get(ledgerId);
    if (lane === undefined) {
      if (this.#lanes.size >= lanesMax) this.#forgetIdle();
      lane = {
        id: ledgerId === null ? null : `${this.#id}|${ledgerId}`,
        waiting: [],
        sending: false,
        outcomes: [],
        answering: false,
        lastSent: null,
        open: 0,
        failed: false,
        resumeFrom: null,
      };
      this.#lanes.set(ledgerId, lane);
    }
    return lane;
  }

  #forgetIdle(): void {
    for (const [ledgerId, lane] of this.#lanes)
      if (!lane.failed && !lane.sending && !lane.answering) this.#lanes.delete(ledgerId);
    if (this.#lanes.size < lanesMax) return;
    throw new LedgerError(
      'unavailable',
      'Events of too many ledgers failed on this stream: on a new stream send again, ledger by ledger, what was not answered as appended.',
    );
  }
}
