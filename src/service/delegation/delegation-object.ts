import { notFound } from '../../domain/errors.ts';
import type { GrantScope } from '../../domain/event/grant.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { organizationCollection } from '../organizations/organization-record.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { Walk } from '../walking/walk.ts';

/** The object of a delegation (an organization, a ledger or a master), and the ledger that has the events about it. */
export interface DelegationObject {
  readonly scope: GrantScope;
  readonly id: string;
  readonly ledgerId: string;
}

export interface DelegationObjects {
  /** The ledger that has the events about the object, without any check of access. null if there is no such object. */
  ledgerOf(scope: GrantScope, id: string): Promise<string | null>;
  /**
   * The object, if the actor may read all events of that scope. Throws `not_found`, `permission_denied` or
   * `access_expired`.
   */
  readable(walk: Walk, scope: GrantScope, id: string, actorId: string): Promise<DelegationObject>;
}

/** Finds the objects of delegations. */
export function delegationObjects(records: RecordStore, reading: LedgerReading): DelegationObjects {
  const organizations = organizationCollection(records);
  return {
    ledgerOf: async (scope, id) => {
      if (scope === 'ledger') return id;
      if (scope === 'master') return (await reading.masterFacts(id))?.ledgerId ?? null;
      return (await organizations.get(id))?.value.frlLedgerId ?? null;
    },

    readable: async (walk, scope, id, actorId) => {
      switch (scope) {
        case 'ledger':
          await reading.readable(walk, id, actorId);
          return { scope, id, ledgerId: id };
        case 'master': {
          const { ledger } = await reading.readableMaster(id, actorId);
          return { scope, id, ledgerId: ledger.ledgerId };
        }
        case 'organization': {
          const held = await organizations.get(id);
          if (held === null) throw notFound('organization');
          const { ledgerId } = await reading.readableOrganization(held.value.frlLedgerId, actorId);
          return { scope, id, ledgerId };
        }
      }
    },
  };
}
