import { LedgerError, notFound } from '../errors.ts';
import type { ActorType, CommandKey } from '../event/event.ts';
import type { LedgerFacts } from '../event/facts.ts';
import { delegatesMax, type FoldedGrant, type GrantScope, hasRoomFor } from '../event/grant.ts';
import {
  genesisPayload,
  grantedPayload,
  grantedType,
  grantObject,
  ledgerClosedPayload,
  masterClosedPayload,
  masterCreatedPayload,
  orderOpenedPayload,
  revokedPayload,
  revokedType,
} from '../event/service-events.ts';
import type { Command, CommandBase, GrantAccess, OpenLedger, RevokeAccess } from './command.ts';
import type { LedgerState } from './ledger-state.ts';
import type { MasterState } from './master-state.ts';
import { demandAccess, ledgerAccessLevel, masterAccessLevel } from './permission.ts';

export interface Draft {
  readonly eventType: string;
  readonly actorId: string | null;
  readonly actorType: ActorType;
  /** Canonical JSON. */
  readonly payload: string;
  readonly masterId: string | null;
  readonly causedByHash: string | null;
  readonly actorSig: string | null;
  /** null if the payload itself was signed, or nothing was signed. */
  readonly actorSigPayload: string | null;
  readonly signingKeyId: string | null;
  readonly commands: readonly CommandKey[];
}

/**
 * Returns the events to append, or throws a LedgerError. Pure: the same state, command and time (ISO, of the events)
 * give the same drafts. `master` is the state of the master that the command names.
 *
 * Permission is checked before state, so that no actor learns the state of a ledger or master that it may not see.
 */
export function decide(ledger: LedgerState, master: MasterState | null, command: Command, at: string): Draft[] {
  if (command.kind === 'open_ledger') return openLedger(ledger, command);
  const facts = ledger.facts;
  if (facts === null) throw notFound('ledger');
  switch (command.kind) {
    case 'create_master':
      demandAccess(ledgerAccessLevel(ledger, command.actorId, at), 'write', 'ledger');
      refuseClosedLedger(ledger);
      if (master !== null) throw new LedgerError('already_exists', 'A master with this id exists.');
      return [draft(command, 'TRACELEDGER_MASTER_CREATED', masterCreatedPayload(facts, command), command.masterId)];
    case 'append_event': {
      const state = visibleMaster(ledger, master, command.actorId, at, 'write');
      refuseClosedLedger(ledger);
      refuseClosedMaster(state);
      const event = draft(command, command.eventType, command.payload, command.masterId);
      return [{ ...event, causedByHash: command.causedByHash }];
    }
    case 'close_master': {
      const state = visibleMaster(ledger, master, command.actorId, at, 'party');
      refuseClosedLedger(ledger);
      refuseClosedMaster(state);
      const payload = masterClosedPayload(facts, command.masterId, command.actorId);
      return [draft(command, 'MASTER_CLOSED', payload, command.masterId)];
    }
    case 'close_ledger':
      demandAccess(ledgerAccessLevel(ledger, command.actorId, at), 'party', 'ledger');
      refuseClosedLedger(ledger);
      return [closeLedger(facts, command)];
    case 'grant':
      return [grant(ledger, master, command, at)];
    case 'revoke':
      return [revoke(ledger, master, command, at)];
  }
}

function openLedger(ledger: LedgerState, command: OpenLedger): Draft[] {
  if (ledger.facts !== null) throw new LedgerError('already_exists', 'This ledger is open already.');
  const drafts = [
    draft({ ...command, actorId: null, actorType: 'service' }, 'GENESIS', genesisPayload(command.facts), null),
  ];
  if (command.facts.type === 'ORDER') {
    drafts.push(draft({ ...command, actorType: 'service' }, 'ORDER_OPENED', orderOpenedPayload(command.facts), null));
  }
  if (command.registeredPayload !== null) {
    drafts.push(
      draft({ ...command, actorType: 'service' }, 'ORGANIZATION_REGISTERED', command.registeredPayload, null),
    );
  }
  return drafts.map((event) => ({ ...event, commands: [] }));
}

/** The authority seals the close. The caller's signature is stored inside the payload. */
function closeLedger(facts: LedgerFacts, command: CommandBase): Draft {
  const signature = command.signature;
  const payload = ledgerClosedPayload(facts, command.actorId, signature);
  const sealed = draft({ ...command, signature: null, actorType: 'service' }, 'LEDGER_CLOSED', payload, null);
  return { ...sealed, actorSigPayload: signature?.signedForm ?? null };
}

function grant(ledger: LedgerState, master: MasterState | null, command: GrantAccess, at: string): Draft {
  const { grants, objectId } = grantsAt(ledger, master, command, at);
  refuseClosedLedger(ledger);
  if (command.scope === 'master' && master !== null) refuseClosedMaster(master);
  if (command.expiresAt !== null && command.expiresAt <= at) {
    throw new LedgerError('invalid_argument', 'Field expires_at must be a time to come.', { field: 'expires_at' });
  }
  const old = grants.get(command.delegateActorId);
  if (!hasRoomFor(command.delegateActorId, grants, at)) {
    throw new LedgerError('invalid_argument', `At most ${delegatesMax} delegates at a time: revoke one first.`, {
      limit: delegatesMax,
    });
  }
  const payload = grantedPayload(
    { ...(JSON.parse(command.requested) as object), ...grantObject(command.scope, objectId) },
    {
      linkId: command.linkId,
      grantedAt: at,
      role: command.role,
      permissions: JSON.parse(command.permissions),
      replacesLinkId: old?.linkId ?? null,
    },
  );
  return draft(command, grantedType[command.scope], payload, command.masterId);
}

function revoke(ledger: LedgerState, master: MasterState | null, command: RevokeAccess, at: string): Draft {
  const { grants, objectId } = grantsAt(ledger, master, command, at);
  const old = findGrant(grants, command);
  if (old === null) {
    throw new LedgerError('not_found', 'This actor holds no such grant.', {
      field: command.linkId === null ? 'delegate_actor_id' : 'link_id',
    });
  }
  const payload = revokedPayload(
    { delegate_actor_id: old.delegateActorId, ...grantObject(command.scope, objectId) },
    { linkId: old.linkId, revokedAt: at },
  );
  return draft(command, revokedType[command.scope], payload, command.masterId);
}

function findGrant(grants: ReadonlyMap<string, FoldedGrant>, command: RevokeAccess): FoldedGrant | null {
  if (command.delegateActorId !== null) return grants.get(command.delegateActorId) ?? null;
  for (const held of grants.values()) if (held.linkId === command.linkId) return held;
  return null;
}

/** For a party, or at ledger and master scope also for a delegate with role OWNER. */
function grantsAt(
  ledger: LedgerState,
  master: MasterState | null,
  command: { readonly scope: GrantScope; readonly actorId: string },
  at: string,
): { grants: ReadonlyMap<string, FoldedGrant>; objectId: string } {
  if (command.scope === 'master') {
    const state = visibleMaster(ledger, master, command.actorId, at, 'owner');
    return { grants: state.grants, objectId: state.facts.masterId };
  }
  const level = ledgerAccessLevel(ledger, command.actorId, at);
  if (command.scope === 'ledger') {
    demandAccess(level, 'owner', 'ledger');
    return { grants: ledger.ledgerGrants, objectId: ledger.facts?.ledgerId ?? '' };
  }
  demandAccess(level, 'party', 'ledger');
  const organizationId = ledger.facts?.organizationId ?? null;
  if (organizationId === null) throw new LedgerError('not_found', 'This ledger is not the root of an organization.');
  return { grants: ledger.organizationGrants, objectId: organizationId };
}

function visibleMaster(
  ledger: LedgerState,
  master: MasterState | null,
  actorId: string,
  at: string,
  needed: 'write' | 'owner' | 'party',
): MasterState {
  if (master === null) throw notFound('master');
  demandAccess(masterAccessLevel(ledger, master, actorId, at), needed, 'master');
  return master;
}

function refuseClosedLedger(ledger: LedgerState): void {
  if (ledger.closed) {
    throw new LedgerError(
      'ledger_closed',
      'This ledger is closed: it can be read, and grants can be revoked, but nothing else is added.',
    );
  }
}

function refuseClosedMaster(master: MasterState): void {
  if (master.closed) {
    throw new LedgerError('master_closed', 'This master is closed: record what is new on another master.');
  }
}

function draft(
  author: Pick<CommandBase, 'actorType' | 'signature' | 'commandKeys'> & { readonly actorId: string | null },
  eventType: string,
  payload: string,
  masterId: string | null,
): Draft {
  const signature = author.signature;
  return {
    eventType,
    actorId: author.actorId,
    actorType: author.actorType,
    payload,
    masterId,
    causedByHash: null,
    actorSig: signature?.signature ?? null,
    actorSigPayload: signature === null || signature.signedForm === payload ? null : signature.signedForm,
    signingKeyId: signature?.keyId ?? null,
    commands: author.commandKeys,
  };
}
