import { actorTypes } from '../../domain/event/event.ts';
import type { IssueType } from '../../domain/event/integrity.ts';
import { sha256HexForm } from '../../domain/keys/hash.ts';
import type { DecisionIssueType } from '../../domain/ledger/decision-fault.ts';
import { isLabel, isName, isRecordedEventType } from '../../domain/values/fields.ts';
import { isoTime, parseRfc3339 } from '../../domain/values/time.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import type { Event } from '../event.ts';

/**
 * What contradicts a checkpoint.
 * - `wrong_checkpoint`: its root is not that of the events at hand, or not that of another checkpoint of its size.
 * - `shorter_than_checkpoint`: it covers more events than the whole ledger or master at hand has.
 */
export type CheckpointIssueType = 'wrong_checkpoint' | 'shorter_than_checkpoint';

/**
 * The issues that the service reports too, events of a wrong form, those that the service cannot have decided, and
 * those that contradict a checkpoint.
 */
export type VerificationIssueType = IssueType | 'malformed_event' | DecisionIssueType | CheckpointIssueType;

export interface VerificationIssue {
  readonly eventId: string;
  readonly type: VerificationIssueType;
  readonly detail: string;
}

/**
 * What could not be checked with the events and keys at hand.
 * - `start_unknown`: the events before the first one are not known, so nothing ties it to the start of its ledger or
 *   master; or there is no event at all.
 * - `middle_unknown`: events are missing between those at hand. A filter or a partial access has left them out, or
 *   somebody has removed them.
 * - `end_unknown`: more events follow those at hand.
 * - `order_unsigned`: the last events stand behind the last seal, and no checkpoint covers them. Their hashes fit each
 *   other, and anybody can compute hashes: their order, number and dates are not the service's word.
 * - `content_unchecked`: the event before in the same master is not there, so the content hash cannot be recomputed.
 * - `hash_unchecked`: the event before in the ledger is not there, so the chain hash cannot be recomputed. Of both: a
 *   seal of the event covers a hash that nothing ties to what the event says, and is not counted.
 * - `actor_keys_unknown`, `authority_keys_unknown`: there is a signature or seal, and no key to check it with. Or an
 *   event is not signed, and no document shows whether its actor had keys and so must have signed.
 * - `actor_keys_untrusted`, `authority_keys_untrusted`: a signature or seal verified under a key that came with the
 *   events. The maker of the events can have made that key too (`trustedKeys`). Or such a document shows that the actor
 *   of an unsigned event had no keys.
 * - `checkpoint_unchecked`: the first events of the log are not all at hand, so its root cannot be recomputed.
 */
export type IncompleteType =
  | 'start_unknown'
  | 'middle_unknown'
  | 'end_unknown'
  | 'order_unsigned'
  | 'content_unchecked'
  | 'hash_unchecked'
  | 'actor_keys_unknown'
  | 'authority_keys_unknown'
  | 'actor_keys_untrusted'
  | 'authority_keys_untrusted'
  | 'checkpoint_unchecked';

export interface IncompleteReason {
  readonly type: IncompleteType;
  /** In words, for the first event that is concerned. */
  readonly detail: string;
  /** Id of the first event that is concerned. Empty if none at hand is. */
  readonly eventId: string;
  readonly count: number;
}

export interface Verification {
  /**
   * `valid`: nothing is wrong and everything was checked. `invalid`: something is wrong. `incomplete`: nothing is wrong
   * in what could be checked.
   */
  readonly verdict: 'valid' | 'invalid' | 'incomplete';
  readonly verified: boolean;
  /** Of the events the first 10,000, and what is wrong with the list as a whole. */
  readonly issues: readonly VerificationIssue[];
  /** Includes the issues that were not kept. */
  readonly issueCount: number;
  readonly incomplete: readonly IncompleteReason[];
  /**
   * The number of events, and how many hashes, signatures and seals were recomputed or verified and found good. A seal
   * counts if the hashes of its event do.
   */
  readonly checked: {
    readonly events: number;
    readonly contentHashes: number;
    readonly chainHashes: number;
    readonly actorSignatures: number;
    readonly authoritySeals: number;
  };
  /** The ledger of the events: the one in the options, else that of the first event. null if neither exists. */
  readonly ledgerId: string | null;
  /** The same for the master. Also null if the events may be of any master. */
  readonly masterId: string | null;
  /** What the checkpoint says of the events that vouches for the most of them. null if none was given. */
  readonly checkpoint: CheckpointCoverage | null;
  /** The same of all checkpoints that were given. */
  readonly checkpoints: readonly CheckpointCoverage[];
  /** The last event, null if there is none. Keep it: a later, longer list must contain the hash (`mustContain`). */
  readonly head: { readonly seq: number; readonly hash: string } | null;
}

export interface CheckpointCoverage {
  readonly origin: string;
  /** Number of events that the checkpoint covers. */
  readonly size: number;
  /** Whether its root was recomputed from the events at hand and is the same. */
  readonly verified: boolean;
  /** Events at hand that follow those of the checkpoint. It says nothing of them. */
  readonly notCovered: number;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Says in words what is wrong with the form of an event's fields. Returns null if nothing is. */
export function malformed(event: Event): string | null {
  if (!isUuid(event.id) || !isUuid(event.ledgerId)) return 'id and ledger_id must be UUIDs';
  if (event.masterId !== null && !isUuid(event.masterId)) return 'master_id must be a UUID';
  if (!Number.isSafeInteger(event.seq) || event.seq < 0) return 'seq must count from 0';
  if (event.masterSeq !== null && (!Number.isSafeInteger(event.masterSeq) || event.masterSeq < 0)) {
    return 'master_seq must count from 0';
  }
  if (!sha256HexForm.test(event.hash) || !sha256HexForm.test(event.contentHash))
    return 'hash and content_hash must be 64 hex digits';
  if (!isRecordedEventType(event.eventType)) return 'event_type is none that the service records';
  // Who asks for keys by the id of an actor asks for a UUID.
  if (event.actorId !== null && !isUuid(event.actorId)) return 'actor_id must be a UUID';
  if (!actorTypes.has(event.actorType)) return `actor_type must be one of ${[...actorTypes].join(', ')}`;
  if (event.causedByHash !== null && !sha256HexForm.test(event.causedByHash))
    return 'caused_by_hash must be 64 hex digits';
  const time = parseRfc3339(event.createdAt);
  // A leap second is parsed, and is written otherwise.
  if (!TIME.test(event.createdAt) || time === null || isoTime(time) !== event.createdAt) {
    return 'created_at must be a time in UTC with three decimals';
  }
  return malformedName(event);
}

/** The names of a master have the forms of the requests that create one, in all of its events. */
function malformedName({ masterId, payload }: Event): string | null {
  if (masterId === null) return null;
  if (Object.hasOwn(payload, 'business_ref') && !isName(payload.business_ref))
    return 'business_ref must be 1 to 256 characters, none of them a control character';
  if (Object.hasOwn(payload, 'scope') && !isLabel(payload.scope)) return 'scope must be a label';
  return null;
}
