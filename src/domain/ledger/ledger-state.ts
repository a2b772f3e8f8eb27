import type { LedgerEvent } from '../event/event.ts';
import { type LedgerFacts, ledgerFacts } from '../event/facts.ts';
import { delegatesMax, type FoldedGrant, foldedGrant, holdsAt } from '../event/grant.ts';
import { closedByType } from '../event/service-events.ts';

/** Raise it when folding the same events would give another state: older snapshots are then not used. */
export const ledgerFoldVersion = 2;

/** What deciding the next event of a ledger needs to know. Masters have their own state. */
export interface LedgerState {
  readonly facts: LedgerFacts | null;
  readonly closed: boolean;
  /** seq, hash and createdAt are of the newest event; -1, '' and '' before GENESIS. */
  readonly seq: number;
  readonly hash: string;
  readonly createdAt: string;
  /** By delegate: in force, or expired and not replaced. */
  readonly ledgerGrants: ReadonlyMap<string, FoldedGrant>;
  /** Only on FACILITY_ROOT ledgers. */
  readonly organizationGrants: ReadonlyMap<string, FoldedGrant>;
}

export const emptyLedger: LedgerState = {
  facts: null,
  closed: false,
  seq: -1,
  hash: '',
  createdAt: '',
  ledgerGrants: new Map(),
  organizationGrants: new Map(),
};

/** Replayed and new events both go through this function. */
export function applyToLedger(state: LedgerState, event: LedgerEvent): LedgerState {
  const closed = state.closed || closedByType(event.eventType) === 'ledger';
  const moved = { ...state, closed, seq: event.seq, hash: event.hash, createdAt: event.createdAt };
  switch (event.eventType) {
    case 'GENESIS':
      return event.seq === 0 ? { ...moved, facts: ledgerFacts(event) } : moved;
    case 'LEDGER_DELEGATION_GRANTED':
      return { ...moved, ledgerGrants: granted(state.ledgerGrants, event) };
    case 'LEDGER_DELEGATION_REVOKED':
      return { ...moved, ledgerGrants: revoked(state.ledgerGrants, event) };
    case 'SUPPLIER_DELEGATION_GRANTED':
      return { ...moved, organizationGrants: granted(state.organizationGrants, event) };
    case 'SUPPLIER_DELEGATION_REVOKED':
      return { ...moved, organizationGrants: revoked(state.organizationGrants, event) };
    default:
      return moved;
  }
}

/**
 * A new grant replaces the delegate's old one. If that makes one too many for memory, the grants that expired first are
 * forgotten. Expiry is judged at the event's own time, so that every fold of the same events forgets the same grants.
 */
export function granted(
  grants: ReadonlyMap<string, FoldedGrant>,
  event: LedgerEvent,
): ReadonlyMap<string, FoldedGrant> {
  const grant = foldedGrant(event);
  const held = new Map(grants).set(grant.delegateActorId, grant);
  if (held.size <= delegatesMax) return held;
  const runOut = [...held.values()].filter((one) => !holdsAt(one, event.createdAt)).toSorted(byExpiry);
  for (const forgotten of runOut.slice(0, held.size - delegatesMax)) held.delete(forgotten.delegateActorId);
  return held;
}

function byExpiry(a: FoldedGrant, b: FoldedGrant): number {
  return `${a.expiresAt}|${a.linkId}` < `${b.expiresAt}|${b.linkId}` ? -1 : 1;
}

export function revoked(
  grants: ReadonlyMap<string, FoldedGrant>,
  event: LedgerEvent,
): ReadonlyMap<string, FoldedGrant> {
  const { delegate_actor_id: delegate } = JSON.parse(event.payload) as { delegate_actor_id: string };
  const left = new Map(grants);
  left.delete(delegate);
  return left;
}

export function ledgerStateJson(state: LedgerState): string {
  return JSON.stringify({
    ...state,
    ledgerGrants: [...state.ledgerGrants.values()],
    organizationGrants: [...state.organizationGrants.values()],
  });
}

export function ledgerStateFrom(json: string): LedgerState {
  const state = JSON.parse(json) as Omit<LedgerState, 'ledgerGrants' | 'organizationGrants'> & {
    ledgerGrants: FoldedGrant[];
    organizationGrants: FoldedGrant[];
  };
  return {
    ...state,
    ledgerGrants: byDelegate(state.ledgerGrants),
    organizationGrants: byDelegate(state.organizationGrants),
  };
}

export function byDelegate(grants: readonly FoldedGrant[]): ReadonlyMap<string, FoldedGrant> {
  return new Map(grants.map((grant) => [grant.delegateActorId, grant]));
}
