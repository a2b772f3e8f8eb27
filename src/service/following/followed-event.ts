import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LedgerEvent } from '../../domain/event/event.ts';
import type { IntegrityIssue } from '../../domain/event/integrity.ts';
import { type ActorGrantChange, actorGrantChange } from '../../domain/event/projection.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { FollowLedgerEventsResponseSchema } from '../../gen/svc/v1/ledgers_pb.ts';
import type { FollowMasterEventsResponseSchema } from '../../gen/svc/v1/masters_pb.ts';
import { shareAnswer } from '../calls/shared-answer.ts';
import { eventMessage } from '../reading/event-message.ts';
import { integrityMessage } from '../reading/event-page.ts';
import type { NewestShown } from './newest-readable.ts';

/** One message of a stream. The two streams have the same fields. */
export type FollowAnswer = MessageInitShape<typeof FollowLedgerEventsResponseSchema> &
  MessageInitShape<typeof FollowMasterEventsResponseSchema>;

/** `resumeAfter`: null before the first event. */
export function eventAnswer(
  event: LedgerEvent,
  issues: readonly IntegrityIssue[],
  resumeAfter: number | null,
): FollowAnswer {
  const value = { event: eventMessage(event), integrity: integrityMessage(issues) };
  return { message: { case: 'event', value }, ...resume(resumeAfter) };
}

/** `newest`: the newest event that the reader may read. `masterId` null: a ledger is followed. */
export function headOf(newest: NewestShown | null, masterId: string | null) {
  const masterSeq = masterId === null ? undefined : newest?.master?.seq;
  return {
    seq: BigInt(newest?.seq ?? -1),
    hash: newest?.hash ?? '',
    ...(masterSeq === undefined ? {} : { masterSeq: BigInt(masterSeq) }),
  };
}

/** `nowMs`: Unix time, ms. */
export function heartbeatAnswer(
  head: ReturnType<typeof headOf>,
  nowMs: number,
  checkpoint: string | null,
  resumeAfter: number | null,
): FollowAnswer {
  const value = { head, sentAt: isoTime(nowMs), ...(checkpoint === null ? {} : { checkpoint }) };
  return { message: { case: 'heartbeat', value }, ...resume(resumeAfter) };
}

export function resume(after: number | null): { resumeAfter?: bigint } {
  return after === null ? {} : { resumeAfter: BigInt(after) };
}

/** An event as all followers of its ledger on this node share it. */
export class FollowedEvent {
  readonly event: LedgerEvent;
  /** Without those of actors' signatures. */
  readonly issues: readonly IntegrityIssue[];
  readonly grantChange: ActorGrantChange | null;
  /** When this node learned that the event is durable (monotonic, ms). null for an event of the past. */
  readonly learnedMs: number | null;
  readonly #encoded: () => void;
  #ofLedger: FollowAnswer | null = null;
  #ofMaster: FollowAnswer | null = null;

  constructor(event: LedgerEvent, issues: readonly IntegrityIssue[], learnedMs: number | null, encoded: () => void) {
    this.event = event;
    this.issues = issues;
    this.learnedMs = learnedMs;
    this.grantChange = changeOf(event);
    this.#encoded = encoded;
  }

  /** The answer to all followers of the ledger whose integrity has no further issues. */
  get ofLedger(): FollowAnswer {
    const answer = this.#ofLedger ?? shareAnswer(eventAnswer(this.event, this.issues, this.event.seq), this.#encoded);
    this.#ofLedger = answer;
    return answer;
  }

  /** The same for the followers of its master. */
  get ofMaster(): FollowAnswer {
    const seq = this.event.master?.seq ?? null;
    const answer = this.#ofMaster ?? shareAnswer(eventAnswer(this.event, this.issues, seq), this.#encoded);
    this.#ofMaster = answer;
    return answer;
  }
}

/** A damaged event changes nothing: its integrity says so. */
function changeOf(event: LedgerEvent): ActorGrantChange | null {
  try {
    return actorGrantChange(event);
  } catch {
    return null;
  }
}
