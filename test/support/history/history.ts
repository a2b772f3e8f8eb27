import { type ErrorCode, LedgerError } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';

/** The event in an answer to a client. If the answer names no event, the one found under its name. */
export type AnsweredEvent = Pick<LedgerEvent, 'id' | 'ledgerId' | 'seq' | 'hash' | 'master'>;

/** The result of an attempt, as its client knows it. */
export type AttemptResult =
  | { readonly kind: 'written'; readonly outcome: { readonly event: AnsweredEvent } }
  /** It broke the rules of the ledger as it was. */
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  /** Certain: this attempt wrote nothing. */
  | { readonly kind: 'not_written'; readonly code: ErrorCode }
  /** It may have been written, or may yet be. */
  | { readonly kind: 'unknown'; readonly code: ErrorCode | 'disconnected' };

/** One sending of a command by a client. */
export interface Attempt {
  /** The command under all its attempts. */
  readonly name: string;
  readonly command: Command;
  readonly node: string;
  /** Places in the one order of all beginnings and ends. */
  readonly begun: number;
  /** null: its client never heard of it. */
  readonly ended: number | null;
  readonly result: AttemptResult;
}

/** One look at a ledger: the newest seq, and the seqs that stand under a scope. */
export interface Look {
  readonly ledgerId: string;
  readonly scope: string;
  readonly begun: number;
  readonly ended: number;
  readonly headSeq: number;
  readonly seqs: readonly number[];
}

/** An event as a follower was sent it. */
export interface Receipt {
  readonly seq: number;
  readonly hash: string;
  /** Its place in the one order of all beginnings and ends. */
  readonly at: number;
}

/** All that one follower of a whole ledger was sent, over all its streams. */
export interface Followed {
  readonly name: string;
  readonly ledgerId: string;
  /** The seq behind which it began; -1: it began with the first event. */
  readonly after: number;
  readonly receipts: readonly Receipt[];
}

export interface History {
  readonly attempts: readonly Attempt[];
  readonly looks: readonly Look[];
  /** None if left out. Each follower must have had time to reach the newest acknowledged event. */
  readonly followed?: readonly Followed[];
}

const nothingWritten: ReadonlySet<ErrorCode> = new Set(['unavailable', 'overloaded', 'idempotency_in_progress']);
const unknown: ReadonlySet<ErrorCode> = new Set(['outcome_unknown', 'internal']);

export function resultOf(error: unknown): AttemptResult {
  if (!(error instanceof LedgerError)) return { kind: 'unknown', code: 'disconnected' };
  if (unknown.has(error.code)) return { kind: 'unknown', code: error.code };
  if (nothingWritten.has(error.code)) return { kind: 'not_written', code: error.code };
  return { kind: 'refused', code: error.code };
}

/** Notes what clients do, in one order. */
export class HistoryBook {
  readonly attempts: Attempt[] = [];
  readonly looks: Look[] = [];
  readonly followed: Followed[] = [];
  #at = 0;

  tick(): number {
    return this.#at++;
  }
}
