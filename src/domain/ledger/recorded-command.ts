import type { LedgerEvent } from '../event/event.ts';
import { ledgerFacts } from '../event/facts.ts';
import type { GrantScope } from '../event/grant.ts';
import type { Members } from '../event/row.ts';
import { delegationOfType, grantAdditions } from '../event/service-events.ts';
import { isoTime, parseRfc3339 } from '../values/time.ts';
import { isUuid } from '../values/uuid-form.ts';
import type { Command, CommandBase, CommandSignature, GrantAccess, RevokeAccess } from './command.ts';
import { genesisFault, grantFault, type RecordedGrant } from './recorded-forms.ts';

/**
 * The command that an event records, so that it can be decided again. A text says why an event records none. Signatures
 * are taken unverified. ORDER_OPENED and ORGANIZATION_REGISTERED come from the command of their GENESIS and are not
 * passed here.
 */
export function recordedCommand(event: LedgerEvent, payload: Members): Command | string {
  const { eventType } = event;
  const masterId = event.master?.id ?? null;
  const base = baseOf(event);
  switch (eventType) {
    case 'GENESIS':
      return openingCommand(event, payload, base);
    case 'LEDGER_CLOSED':
      return { ...base, kind: 'close_ledger', signature: closingSignature(event, payload) };
  }
  const delegation = delegationOfType(eventType);
  if (delegation !== undefined && (delegation.scope !== 'master' || masterId !== null)) {
    const { isGrant, scope } = delegation;
    const scoped = { ...base, scope, masterId: scope === 'master' ? masterId : null };
    return isGrant ? grantCommand(event, payload, scoped) : revokeCommand(payload, scoped);
  }
  if (masterId === null) return `an event of type ${eventType} belongs to a master, and this one names none`;
  if (eventType === 'TRACELEDGER_MASTER_CREATED') {
    const { business_ref: businessRef, scope: masterScope } = payload;
    if (typeof businessRef !== 'string' || typeof masterScope !== 'string')
      return 'payload.business_ref or payload.scope is missing';
    return { ...base, kind: 'create_master', masterId, businessRef, scope: masterScope };
  }
  if (eventType === 'MASTER_CLOSED') return { ...base, kind: 'close_master', masterId };
  const { causedByHash } = event;
  return { ...base, kind: 'append_event', masterId, eventType, payload: event.payload, causedByHash };
}

function openingCommand(event: LedgerEvent, payload: Members, base: CommandBase): Command | string {
  const registeredPayload = registered(payload);
  return (
    genesisFault(payload) ?? {
      ...base,
      kind: 'open_ledger',
      signature: null,
      facts: ledgerFacts(event),
      registeredPayload,
    }
  );
}

function baseOf(event: LedgerEvent): CommandBase {
  return {
    ledgerId: event.ledgerId,
    actorId: event.actorId ?? '',
    actorType: event.actorType,
    signature: signatureOf(event),
    signatureRule: 'optional',
    commandKeys: [],
    deadline: Number.MAX_SAFE_INTEGER,
  };
}

function signatureOf({ actorSig, signingKeyId, actorSigPayload, payload }: LedgerEvent): CommandSignature | null {
  if (actorSig === null) return null;
  return { signature: actorSig, keyId: signingKeyId ?? '', signedForm: actorSigPayload ?? payload };
}

function closingSignature({ actorSigPayload }: LedgerEvent, payload: Members): CommandSignature | null {
  const { requestor_sig: signature, requestor_signing_key_id: keyId } = payload;
  if (typeof signature !== 'string' || typeof keyId !== 'string') return null;
  return { signature, keyId, signedForm: actorSigPayload ?? '' };
}

/** It only matters whether there is an ORGANIZATION_REGISTERED event, which has its payload itself. */
function registered(genesis: Members): string | null {
  return genesis.ledger_type === 'FACILITY_ROOT' ? '{}' : null;
}

type Scoped = CommandBase & { readonly scope: GrantScope; readonly masterId: string | null };

function grantCommand(event: LedgerEvent, payload: Members, base: Scoped): GrantAccess | string {
  const fault = grantFault(payload, base.scope);
  if (fault !== null) return fault;
  if (payload.granted_at !== event.createdAt) return "payload.granted_at is not the event's created_at";
  const granted = payload as unknown as RecordedGrant;
  const { link_id: linkId, delegate_actor_id: delegateActorId, role, permissions, expires_at: expires } = granted;
  const expiresMs = expires === undefined ? null : parseRfc3339(expires);
  const requested = Object.entries(payload).filter(([name]) => !grantAdditions.has(name));
  return {
    ...base,
    kind: 'grant',
    linkId,
    delegateActorId,
    role,
    permissions: JSON.stringify(permissions),
    expiresAt: expiresMs === null ? null : isoTime(expiresMs),
    requested: JSON.stringify(Object.fromEntries(requested)),
  };
}

function revokeCommand(payload: Members, base: Scoped): RevokeAccess | string {
  const { link_id: linkId, delegate_actor_id: delegateActorId } = payload;
  if (!isId(linkId) || !isId(delegateActorId)) return 'payload.link_id and payload.delegate_actor_id must be UUIDs';
  return { ...base, kind: 'revoke', delegateActorId, linkId };
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && isUuid(value);
}
