import { LedgerError } from './errors.ts';
import { type Grant, type GrantScope, holdsAt } from './grant.ts';
import { isParty } from './ledger-facts.ts';
import type { LedgerState } from './ledger-state.ts';
import type { MasterState } from './master-state.ts';

/** What an actor may do with a ledger or master at a time. `expired`: it could at least read, by a grant that has run out. */
export type Standing = 'party' | 'owner' | 'write' | 'read' | 'expired' | 'none';

/**
 * A grant of role OWNER at ledger scope also grants and revokes, unless its permissions say `read`: who was given no more than that
 * must not be able to give himself more.
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

/** Standing on the whole ledger (decisions.md, section 5): party, ledger delegate, or on an FRL organization delegate. */
export function ledgerStanding(state: LedgerState, actorId: string, at: string): Standing {
  if (state.facts !== null && isParty(state.facts, actorId)) return 'party';
  return strongerStanding(
    grantStanding('ledger', state.ledgerGrants.get(actorId), at),
    grantStanding('organization', state.organizationGrants.get(actorId), at),
  );
}

/** Standing on one master: that on its ledger, or by a grant of the master itself. */
export function masterStanding(ledger: LedgerState, master: MasterState, actorId: string, at: string): Standing {
  return strongerStanding(ledgerStanding(ledger, actorId, at), grantStanding('master', master.grants.get(actorId), at));
}

/** Throws unless the standing is at least `needed`: 404 for none, `access_expired`, else `permission_denied`. */
export function demand(
  standing: Standing,
  needed: 'read' | 'write' | 'owner' | 'party',
  what: 'ledger' | 'master',
): void {
  if (rank[standing] >= rank[needed]) return;
  if (standing === 'none') {
    throw new LedgerError('not_found', `There is no such ${what}, or you may not see it.`);
  }
  if (standing === 'expired') {
    throw new LedgerError(
      'access_expired',
      `Your access to this ${what} has run out; ask a party of the ledger for a new grant.`,
    );
  }
  throw new LedgerError(
    'permission_denied',
    `You may read this ${what}, but this call needs more: ask a party of the ledger for a grant.`,
    {
      needed,
    },
  );
}
