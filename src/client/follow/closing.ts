import { closedByType } from '../../domain/event/service-events.ts';
import { LedgerTrustError } from '../error.ts';
import type { Event } from '../event.ts';
import type { ProofReader } from '../proofs/proof-reading.ts';
import type { SingleEvents } from '../single-events.ts';
import type { SignatureCheck } from '../verify/verify-signature.ts';
import { CheckedEvents } from './checked-events.ts';
import type { FollowIssues, FollowRequest } from './follow-api.ts';

/** Whether nothing is followed behind the event, where the master or, without one, the ledger is followed. */
export function closes(event: Event, followed: Pick<FollowRequest, 'masterId'>): boolean {
  const { masterId } = followed;
  const closed = closedByType(event.eventType);
  return masterId === undefined ? closed === 'ledger' : closed === 'master' && event.masterId === masterId;
}

interface ClosingParts {
  readonly reader: SingleEvents;
  readonly proofs: Pick<ProofReader, 'proveEvent'>;
  readonly checkSignature: SignatureCheck;
  readonly signal: AbortSignal;
}

/** What the service says is over, and places in it: `seq`, or `master_seq` of a master. */
interface Followed {
  readonly ledgerId: string;
  readonly masterId: string | undefined;
  /** The event that following began behind. */
  readonly began: number;
  /** The last event that was handed out. */
  readonly place: number;
}

/** The event that closed what is followed, and what is wrong with it. */
interface FoundClosing {
  readonly event: Event;
  readonly issues: FollowIssues;
}

/** Codes of a service that does not show the closing to this reader. */
const UNREADABLE = new Set<string>(['permission_denied', 'access_expired', 'not_found']);

/**
 * Reads the event that closed what is followed, and checks it as if it had been followed. null: there is none, or
 * events up to it were not handed out. 'unreadable': this reader cannot see whether there is one. Throws ProofRefused,
 * and what a call throws.
 */
export async function findClosing(
  parts: ClosingParts,
  followed: Followed,
): Promise<FoundClosing | 'unreadable' | null> {
  try {
    const event = await closingOf(parts.reader, followed);
    if (event === null || event === 'unreadable') return event;
    return {
      event,
      issues: isSkipped(event, followed) ? skipped(event) : await issuesOf(parts, event, followed.ledgerId),
    };
  } catch (error) {
    if (error instanceof LedgerTrustError && UNREADABLE.has(error.code)) return 'unreadable';
    throw error;
  }
}

async function closingOf(
  reader: SingleEvents,
  { ledgerId, masterId, place }: Followed,
): Promise<Event | 'unreadable' | null> {
  if (masterId !== undefined) {
    const last = await reader.lastOfMaster(masterId);
    if (last === null || last === 'unreadable') return last;
    if ((last.masterSeq ?? 0) > place) return null;
    if (closes(last, { masterId })) return last;
  }
  const last = await reader.lastOfLedger(ledgerId);
  if (last === null || last === 'unreadable') return last;
  // A master ends with its ledger, wherever its own last event stands.
  const isOver = closes(last, { masterId: undefined }) && (masterId !== undefined || last.seq <= place);
  return isOver ? last : null;
}

/** Whether another event was handed out at the place of the closing, or none. It would have ended following. */
function isSkipped(event: Event, { masterId, began }: Followed): boolean {
  return closes(event, { masterId }) && ((masterId === undefined ? event.seq : event.masterSeq) ?? 0) > began;
}

function skipped({ id }: Event): FollowIssues {
  const detail = 'the service shows this closing at a place for which it has sent another event, or none';
  return [{ eventId: id, type: 'broken_link', detail }];
}

async function issuesOf(parts: ClosingParts, event: Event, ledgerId: string): Promise<FollowIssues> {
  const { reader, checkSignature } = parts;
  const checked = new CheckedEvents({
    request: { ledgerId, segment: true, after: event.seq - 1 },
    checkSignature,
    masterEventBefore: async ({ masterId, masterSeq }) =>
      masterId === null || masterSeq === null ? null : reader.masterEvent(masterId, masterSeq - 1),
  });
  const before = await reader.ledgerEvent(ledgerId, event.seq - 1);
  if (before !== null) await checked.beginBehind(before, null);
  const { event: taken, issues } = await checked.take(event, []);
  if (issues.length === 0 && taken?.checks.chainHash !== true) await proveIfSigned(parts, event);
  return issues;
}

/**
 * Proves the closing to a reader who may not read the event before it, and cannot recompute its hash. A service that
 * signs no checkpoint of the ledger, such as an older one or one on a restored copy, has no proof. Throws ProofRefused.
 */
async function proveIfSigned({ proofs, signal }: ClosingParts, event: Event): Promise<void> {
  try {
    await proofs.proveEvent(event, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof LedgerTrustError)) throw error;
  }
}
