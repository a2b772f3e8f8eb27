import { sha256Hex } from '../keys/hash.ts';
import { eventHash } from './content.ts';
import type { LedgerEvent, MasterLink } from './event.ts';

export type IssueType =
  | 'hash_mismatch'
  | 'broken_link'
  | 'missing_event'
  | 'invalid_authority_sig'
  | 'invalid_actor_sig';

export interface IntegrityIssue {
  readonly eventId: string;
  readonly type: IssueType;
  readonly detail: string;
}

/** What the checked events claim to be. */
export interface Range {
  /** `segment`: the result of a filter, in which gaps are no fault. */
  readonly kind: 'ledger' | 'master' | 'segment';
  /** The event before the first one. null if there is none, undefined if it was not read. */
  readonly before?: LedgerEvent | null;
  /** The newest event of each master before the first one, as far as known. */
  readonly masterEnds?: { get(masterId: string): MasterEnd | undefined };
}

/** Of the newest event of a master. */
export interface MasterEnd {
  readonly seq: number;
  /** Lower-case hex. */
  readonly contentHash: string;
}

export function masterEnd({ contentHash }: LedgerEvent, { seq }: MasterLink): MasterEnd {
  return { seq, contentHash };
}

/**
 * Checks hashes and links of events in ascending order (docs/verifying.md, sections 2 and 3). Signatures and seals cost
 * a hundred times as much, and are checked elsewhere. `contentHash` must be computed from the stored bytes, as parseRow
 * does.
 */
export function checkChain(events: readonly LedgerEvent[], range: Range): IntegrityIssue[] {
  const issues: IntegrityIssue[] = [];
  events.forEach(chainCheck(range, issues));
  return issues;
}

/** Like checkChain, for events that come one by one. */
export function chainCheck(range: Range, issues: IntegrityIssue[]): (event: LedgerEvent) => void {
  let previous: LedgerEvent | null = range.before ?? null;
  const masters = new Map<string, MasterEnd>();
  if (previous?.master) masters.set(previous.master.id, masterEnd(previous, previous.master));
  return (event) => {
    checkHash(event, issues);
    checkAttribution(event, issues);
    checkLedgerLink(previous, event, range, issues);
    if (event.master !== null) {
      const before = masters.get(event.master.id) ?? range.masterEnds?.get(event.master.id);
      checkMasterLink(before ?? null, event, event.master, range, issues);
      masters.set(event.master.id, masterEnd(event, event.master));
    }
    previous = event;
  };
}

function checkHash(event: LedgerEvent, issues: IntegrityIssue[]): void {
  const wrong = wrongHash(event);
  if (wrong !== null) issues.push({ eventId: event.id, type: 'hash_mismatch', detail: wrong });
}

/** The service writes no seal beside a signature. */
function checkAttribution(event: LedgerEvent, issues: IntegrityIssue[]): void {
  if (event.actorSig === null || (event.authoritySig === null && event.authorityKeyId === null)) return;
  const detail = 'the event is signed by its actor and yet carries a seal of the authority';
  issues.push({ eventId: event.id, type: 'invalid_authority_sig', detail });
}

/** What is wrong with an event's own hashes, or null. */
export function wrongHash(event: LedgerEvent): string | null {
  if (sha256Hex(event.payload) !== event.payloadHash) {
    return 'the stored payload does not match the payload hash that the event seals';
  }
  const signed = event.actorSigPayload === null ? null : sha256Hex(event.actorSigPayload);
  if (signed !== event.actorSigPayloadHash) {
    return 'the stored signed payload does not match the hash that the event seals';
  }
  if (eventHash(event.prevHash, event.contentHash) !== event.hash) {
    return 'the stored hash does not match the recomputed hash';
  }
  return null;
}

function checkLedgerLink(
  previous: LedgerEvent | null,
  event: LedgerEvent,
  range: Range,
  issues: IntegrityIssue[],
): void {
  const broken = (detail: string) => issues.push({ eventId: event.id, type: 'broken_link', detail });
  const missing = (detail: string) => issues.push({ eventId: event.id, type: 'missing_event', detail });
  if (event.seq === 0 && event.prevHash !== '') broken('the first event of a ledger names an event before it');
  if (previous === null) {
    if (range.kind === 'ledger' && event.seq > 0 && range.before === null) {
      missing(`no event stands before seq ${event.seq}`);
    }
    return;
  }
  if (event.seq === previous.seq + 1) {
    if (event.prevHash !== previous.hash) broken('the event does not seal the hash of the event before it');
    if (event.createdAt < previous.createdAt) broken('the event is dated before the event before it');
  } else if (event.seq <= previous.seq) {
    broken('the event stands behind one that has its seq or a later one');
  } else if (range.kind === 'ledger') {
    missing(`${missingEvents(event.seq - previous.seq - 1)} before seq ${event.seq}`);
  }
}

function checkMasterLink(
  before: MasterEnd | null,
  event: LedgerEvent,
  link: MasterLink,
  range: Range,
  issues: IntegrityIssue[],
): void {
  const broken = (detail: string) => issues.push({ eventId: event.id, type: 'broken_link', detail });
  const missing = (detail: string) => issues.push({ eventId: event.id, type: 'missing_event', detail });
  if (link.seq === 0 && link.prevHash !== '') broken('the first event of a master names an event before it');
  if (before === null) {
    if (range.kind === 'master' && link.seq > 0 && range.before === null) {
      missing(`no event stands before master_seq ${link.seq}`);
    }
    return;
  }
  if (link.seq === before.seq + 1) {
    if (link.prevHash !== before.contentHash) broken('the event does not seal the event before it in its master');
  } else if (link.seq <= before.seq) {
    broken('the event stands behind one of its master that has its master_seq or a later one');
  } else if (range.kind !== 'segment') {
    missing(`${missingEvents(link.seq - before.seq - 1, ' of the master')} before master_seq ${link.seq}`);
  }
}

export function missingEvents(count: number, whose = ''): string {
  return count === 1 ? `1 event${whose} is missing` : `${count} events${whose} are missing`;
}
