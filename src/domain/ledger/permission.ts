import { LedgerError, notFound } from '../errors.ts';
import { isParty } from '../event/facts.ts';
import { type Grant, type GrantScope, holdsAt } from '../event/grant.ts';
import type { LedgerState } from './ledger-state.ts';
import type { MasterState } from './master-state.ts';

/** An actor's access to a ledger or master at a time. 'expired': the actor had a grant, and it has expired. */
export type Standing = 'party' | 'owner' | 'write' | 'read' | 'expired' | 'none';

/**
 * The access that a grant gives at a time (ISO). A grant of role OWNER at ledger scope also allows granting and
 * revoking, unless its permissions say `read`: an actor that may only read must not be able to grant itself more.
 */
export function grantStanding(scope: GrantScope, grant: Grant | null | undefined, at: string): Standing {
  if (grant === null || grant === undefined) return 'none';
  if (!holdsAt(grant, at)) return 'expired';
  return scope === 'ledger' && grant.role === 'OWNER' && grant.access === 'write' ? 'owner' : grant.access;
}

const rank: Record<Standing, number> = { party: 5, owner: 4, write: 3, read: 2, expired: 1, none: 0 };

export function strongerStanding(a: Standing, b: Standing): Standing {
  return rank[a] >= rank[b] ? a : b;
}

/** Access to the whole ledger: as a party, a ledger delegate, or on a FACILITY_ROOT an organization delegate. */
export function ledgerStanding(state: LedgerState, actorId: string, at: string): Standing {
  if (state.facts !== null && isParty(state.facts, actorId)) return 'party';
  return strongerStanding(
    grantStanding('ledger', state.ledgerGrants.get(actorId), at),
    grantStanding('organization', state.organizationGrants.get(actorId), at),
  );
}

/** Access to one master: the access to its ledger, or a grant of the master itself, whichever is stronger. */
export function masterStanding(ledger: LedgerState, master: MasterState, actorId: string, at: string): Standing {
  return strongerStanding(ledgerStanding(ledger, actorId, at), grantStanding('master', master.grants.get(actorId), at));
}

/** Throws if the access is less than `needed`: `not_found`, `access_expired` or `permission_denied`. */
export function demand(
  standing: Standing,
  needed: 'read' | 'write' | 'owner' | 'party',
  what: 'ledger' | 'master',
): void {
  if (rank[standing] >= rank[needed]) return;
  if (standing === 'none') throw notFound(what);
  const message =
    standing === 'expired'
      ? `Your access to this ${what} has run out; ask a party of the ledger for a new grant.`
      : `You may read this ${what}, but this call needs more: ask a party of the ledger for a grant.`;
  if (standing === 'expired') throw new LedgerError('access_expired', message);
  throw new LedgerError('permission_denied', message, { needed });
}
