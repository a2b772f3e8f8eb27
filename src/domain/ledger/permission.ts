import { LedgerError, notFound } from '../errors.ts';
import { isParty, type LedgerFacts } from '../event/facts.ts';
import { type GrantScope, type GrantTerms, holdsAt } from '../event/grant.ts';
import { names } from '../event/projection.ts';
import type { LedgerState } from './ledger-state.ts';
import type { MasterState } from './master-state.ts';

/**
 * 'owner': a delegate with a ledger grant of role OWNER, which may also grant. The owner of a root ledger is a 'party'.
 * 'expired': the actor had a grant, and it has expired.
 */
export type AccessLevel = 'party' | 'owner' | 'write' | 'read' | 'expired' | 'none';

export function mayRead(level: AccessLevel): boolean {
  return rank[level] >= rank.read;
}

export interface GrantObject {
  readonly scope: GrantScope;
  readonly id: string;
}

/**
 * The read rule: who may read an event. Besides the parties of its ledger, the delegates of `objects` may: the ledger,
 * the organization whose root the ledger is, and the event's master. An event of the ledger itself (`masterId` null)
 * may also be read by the delegates of any master of the ledger (`anyMaster`). The delegates of the `objects` for
 * `masterId` null may read the whole ledger. So a delegate of one master never reads the events of another one.
 *
 * Its callers: `LedgerReading`, for reads and proofs and before each attempt of a webhook; `ReaderAccess`, for streams
 * that follow; `readSpans`, for webhooks, whose owners must also have been able to read the event when it was written.
 */
export function readRule(
  { ledgerId, organizationId }: LedgerFacts,
  masterId: string | null,
): { readonly objects: readonly GrantObject[]; readonly anyMaster: boolean } {
  const objects: GrantObject[] = [{ scope: 'ledger', id: ledgerId }];
  if (organizationId !== null) objects.push({ scope: 'organization', id: organizationId });
  if (masterId !== null) objects.push({ scope: 'master', id: masterId });
  return { objects, anyMaster: masterId === null };
}

/** The scopes of the events that a delegate of these masters alone may read by the read rule. */
export function partialReaderScopes(ledgerId: string, masterIds: readonly string[]): readonly string[] {
  return [names.ownEvents(ledgerId), ...masterIds.map(names.masterEvents)];
}

/**
 * A grant of role OWNER at ledger scope also allows granting and revoking, unless its permissions say `read`: an actor
 * that may only read must not be able to grant itself more.
 */
export function grantAccessLevel(scope: GrantScope, grant: GrantTerms | null | undefined, at: string): AccessLevel {
  if (grant === null || grant === undefined) return 'none';
  if (!holdsAt(grant, at)) return 'expired';
  return scope === 'ledger' && grant.role === 'OWNER' && grant.access === 'write' ? 'owner' : grant.access;
}

const rank: Record<AccessLevel, number> = { party: 5, owner: 4, write: 3, read: 2, expired: 1, none: 0 };

export function strongerAccess(a: AccessLevel, b: AccessLevel): AccessLevel {
  return rank[a] >= rank[b] ? a : b;
}

/** As a party, a ledger delegate, or on a FACILITY_ROOT ledger as an organization delegate. */
export function ledgerAccessLevel(state: LedgerState, actorId: string, at: string): AccessLevel {
  if (state.facts !== null && isParty(state.facts, actorId)) return 'party';
  return strongerAccess(
    grantAccessLevel('ledger', state.ledgerGrants.get(actorId), at),
    grantAccessLevel('organization', state.organizationGrants.get(actorId), at),
  );
}

/** The access to its ledger, or a grant of the master itself, whichever is stronger. */
export function masterAccessLevel(ledger: LedgerState, master: MasterState, actorId: string, at: string): AccessLevel {
  return strongerAccess(
    ledgerAccessLevel(ledger, actorId, at),
    grantAccessLevel('master', master.grants.get(actorId), at),
  );
}

/** Throws `not_found` for no access, `access_expired` for an expired grant, otherwise `permission_denied`. */
export function demandAccess(
  level: AccessLevel,
  needed: 'read' | 'write' | 'owner' | 'party',
  what: 'ledger' | 'master',
): void {
  if (rank[level] >= rank[needed]) return;
  if (level === 'none') throw notFound(what);
  if (level === 'expired') {
    throw new LedgerError(
      'access_expired',
      `Your access to this ${what} has run out; ask a party of the ledger for a new grant.`,
    );
  }
  throw new LedgerError(
    'permission_denied',
    `You may read this ${what}, but this call needs more: ask a party of the ledger for a grant.`,
    { needed },
  );
}
