import type { Event } from '../event.ts';
import type { ProofReader } from '../proofs/proof-reading.ts';
import type { SingleEvents } from '../single-events.ts';
import type { SignatureCheck } from '../verify/verify-signature.ts';
import { CheckedEvents } from './checked-events.ts';
import type { FollowIssues, FollowRequest } from './follow-api.ts';

type Followed = Pick<FollowRequest, 'ledgerId' | 'masterId'>;

/** Whether nothing is followed behind the event. */
export function closes({ eventType, masterId: of }: Event, { masterId }: Followed): boolean {
  return masterId === undefined ? eventType === 'LEDGER_CLOSED' : eventType === 'MASTER_CLOSED' && of === masterId;
}

interface ClosingParts {
  readonly reader: SingleEvents;
  readonly proofs: Pick<ProofReader, 'proveEvent'>;
  readonly checkSignature: SignatureCheck;
  readonly signal: AbortSignal;
}

/** The event that closed what is followed, and what is wrong with it. */
interface FoundClosing {
  readonly event: Event;
  readonly issues: FollowIssues;
}

/**
 * Reads the event that closed what is followed, where the service says that nothing follows behind `place`, and checks
 * it as if it had been followed. null: there is none, or it stands behind that place, so that it would have to be sent.
 * Throws ProofRefused, and what a call throws.
 */
export async function findClosing(
  parts: ClosingParts,
  followed: Followed & { readonly ledgerId: string },
  place: number,
): Promise<FoundClosing | null> {
  const event = await closingAt(parts.reader, followed, place);
  return event === null ? null : { event, issues: await issuesOf(parts, event, followed.ledgerId) };
}

async function closingAt(
  reader: SingleEvents,
  { ledgerId, masterId }: Followed & { readonly ledgerId: string },
  place: number,
): Promise<Event | null> {
  const ofMaster = masterId === undefined ? null : await reader.closingOfMaster(masterId);
  if (ofMaster !== null)
    return closes(ofMaster, { masterId }) && (ofMaster.masterSeq ?? Number.POSITIVE_INFINITY) <= place
      ? ofMaster
      : null;
  const ofLedger = await reader.closingOfLedger(ledgerId);
  if (ofLedger === null || !closes(ofLedger, { ledgerId })) return null;
  // A master ends with its ledger, wherever its own last event stands.
  return masterId !== undefined || ofLedger.seq <= place ? ofLedger : null;
}

async function issuesOf(parts: ClosingParts, event: Event, ledgerId: string): Promise<FollowIssues> {
  const { reader, proofs, checkSignature, signal } = parts;
  const checked = new CheckedEvents({
    request: { ledgerId, segment: true, after: event.seq - 1 },
    checkSignature,
    masterEventBefore: async ({ masterId, masterSeq }) =>
      masterId === null || masterSeq === null ? null : reader.masterEvent(masterId, masterSeq - 1),
  });
  const before = await reader.ledgerEvent(ledgerId, event.seq - 1);
  if (before !== null) await checked.beginBehind(before, null);
  const { event: taken, issues } = await checked.take(event, []);
  // Who may not read the event before it gets its tie to the ledger by a proof.
  if (issues.length === 0 && taken?.checks.chainHash !== true) await proofs.proveEvent(event, { signal });
  return issues;
}
