import type { DecisionIssueType } from '../domain/decision-check.ts';
import { sha256HexForm } from '../domain/hash.ts';
import type { IssueType } from '../domain/integrity.ts';
import { parseRfc3339 } from '../domain/time.ts';
import { isUuid } from '../domain/uuid.ts';
import type { Event } from './event.ts';

/**
 * What a verification finds: the service's own types, a form that no event has, and what the service cannot have
 * decided.
 */
export type VerificationIssueType = IssueType | 'malformed_event' | DecisionIssueType;

export interface VerificationIssue {
  readonly eventId: string;
  readonly type: VerificationIssueType;
  readonly detail: string;
}

/**
 * What could not be checked with what is at hand:
 * `start_unknown`: what stands before the first event is not known, so nothing ties it to the start of its ledger or
 * master; or there is no event at all.
 * `middle_unknown`: events are missing between those at hand, left out by a filter or a partial access, or by somebody.
 * `end_unknown`: more events follow what is at hand.
 * `content_unchecked`: the event before in the same master is not there, so the event's content hash cannot be
 * recomputed.
 * `hash_unchecked`: the event before in the ledger is not there, so the chain hash cannot be recomputed.
 * `actor_keys_unknown`, `authority_keys_unknown`: a signature or seal was found and no key to check it with.
 * `actor_keys_untrusted`, `authority_keys_untrusted`: a signature or seal verified, under a key that came with the
 * events. The maker of the events can have made that key too (`trustedKeys`).
 */
export type IncompleteType =
  | 'start_unknown'
  | 'middle_unknown'
  | 'end_unknown'
  | 'content_unchecked'
  | 'hash_unchecked'
  | 'actor_keys_unknown'
  | 'authority_keys_unknown'
  | 'actor_keys_untrusted'
  | 'authority_keys_untrusted';

export interface IncompleteReason {
  readonly type: IncompleteType;
  /** Of the first event that it holds for. */
  readonly detail: string;
  /** Empty where it holds for none of those at hand: what is missing stands before or behind them. */
  readonly eventId: string;
  /** How many events it holds for. */
  readonly count: number;
}

export interface Verification {
  /** `valid`: nothing is wrong and everything was checked. `incomplete`: nothing is wrong in what could be checked. */
  readonly verdict: 'valid' | 'invalid' | 'incomplete';
  /** The verdict is `valid`. */
  readonly verified: boolean;
  readonly issues: readonly VerificationIssue[];
  readonly incomplete: readonly IncompleteReason[];
  /** How much was recomputed and found good. */
  readonly checked: {
    readonly events: number;
    readonly contentHashes: number;
    readonly chainHashes: number;
    readonly actorSignatures: number;
    readonly authoritySeals: number;
  };
  /** What the events are of, as it was told or as the first of them says; null where there is none. */
  readonly ledgerId: string | null;
  /** Null too where they may be of any master. */
  readonly masterId: string | null;
  /** The last event's place and hash, to be kept: a later, longer reading must hold it again (`mustContain`). */
  readonly head: { readonly seq: number; readonly hash: string } | null;
}

/** Of one length, so that times compare as text. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What is wrong with the form of an event's fields, in words; null where nothing is. */
export function malformed(event: Event): string | null {
  if (!isUuid(event.id) || !isUuid(event.ledgerId)) return 'id and ledger_id must be UUIDs';
  if (event.masterId !== null && !isUuid(event.masterId)) return 'master_id must be a UUID';
  if (!Number.isSafeInteger(event.seq) || event.seq < 0) return 'seq must count from 0';
  if (event.masterSeq !== null && (!Number.isSafeInteger(event.masterSeq) || event.masterSeq < 0)) {
    return 'master_seq must count from 0';
  }
  if (!sha256HexForm.test(event.hash) || !sha256HexForm.test(event.contentHash))
    return 'hash and content_hash must be 64 hex digits';
  if (event.eventType.includes('\0')) return 'event_type holds a NUL';
  if (!TIME.test(event.createdAt) || parseRfc3339(event.createdAt) === null) {
    return 'created_at must be a time in UTC with three decimals';
  }
  return null;
}
