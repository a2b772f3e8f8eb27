import type { CommandOutcome } from '../../actors/outcome.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { PreparedAppend } from '../writing/appending.ts';

/** Lanes of a stream, a KB each: more than events can be open on it. */
const lanesMax = 1_024;

/** An event of a stream whose outcome is owed. */
export interface Promised {
  readonly clientIndex: bigint;
  /** What it counts for while it is open. */
  readonly length: number;
  /** The same in the memory budget. */
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly prepared: Promise<PreparedAppend>;
}

/** The events of one ledger on a stream: sent to its actor in the order of the stream, answered in that order. */
export interface LedgerLane {
  /** null: of the one lane for all events whose masters are not there. None of these is sent. */
  readonly id: string | null;
  readonly waiting: Promised[];
  sending: boolean;
  /** Sent, and not answered yet. One queue for as long as anything is open: nothing is answered before what was sent earlier. */
  readonly outcomes: { readonly promised: Promised; readonly outcome: Promise<CommandOutcome> }[];
  answering: boolean;
  lastSent: number | null;
  open: number;
  /** An event failed in a way that a retry may mend: nothing more of this ledger is taken. */
  failed: boolean;
  /** The first event, in the order of the stream, that failed in such a way. Known once all before it are answered. */
  resumeFrom: bigint | null;
}

/**
 * The lanes of a stream. One that is idle holds nothing that its successor would miss, so it is kept for the next event of its ledger alone, and
 * goes when there is no room. One that failed stays as long as the stream.
 */
export class LedgerLanes {
  /** Of this stream and no other. */
  readonly #id: string;
  readonly #lanes = new Map<string | null, LedgerLane>();

  constructor(id: string) {
    this.#id = id;
  }

  /** The lane of a ledger; null: of masters that are not there. Throws `unavailable` where so many have failed that there is no room. */
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
