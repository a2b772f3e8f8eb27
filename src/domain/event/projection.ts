import type { CommandKey, LedgerEvent } from './event.ts';
import { type LedgerFacts, ledgerFacts, masterFacts } from './facts.ts';
import { foldedGrant, type Grant, type GrantScope, type GrantTerms, grantOf, grantTerms } from './grant.ts';
import { isMembers } from './row.ts';
import { delegationOfType } from './service-events.ts';

/**
 * What is derived from one event and stored beside the log. Projections commute: they may be written again, late, and
 * in any order. A cell carries the event's seq as its version, and an older version never replaces a newer one.
 */
export type Projection =
  /** Lists the event's seq under `scope`. */
  | { readonly kind: 'scope'; readonly scope: string }
  /** Makes the command key findable by its id. */
  | { readonly kind: 'command'; readonly command: CommandKey }
  /** A value by key. JSON text. */
  | { readonly kind: 'cell'; readonly key: string; readonly value: string }
  /** A line of a list. `order` sorts the list and is unique in it. JSON text. */
  | { readonly kind: 'line'; readonly list: string; readonly order: string; readonly value: string };

export const grantChangesPrefix = 'grant-changes:';

/** The names under which readers find projections. */
export const names = {
  ledger: (ledgerId: string) => `ledger:${ledgerId}`,
  /** The time of the closing, as JSON text. So for `masterClosed`. */
  ledgerClosed: (ledgerId: string) => `ledger-closed:${ledgerId}`,
  master: (masterId: string) => `master:${masterId}`,
  masterClosed: (masterId: string) => `master-closed:${masterId}`,
  grant: (scope: GrantScope, objectId: string, delegate: string) => `grant:${scope}:${objectId}:${delegate}`,
  linkEnded: (linkId: string) => `link-ended:${linkId}`,
  /** Names of lists. */
  grantChanges: (scope: GrantScope, objectId: string, delegate: string) =>
    `${grantChangesPrefix}${scope}:${objectId}:${delegate}`,
  ledgersOf: (actorId: string) => `ledgers:${actorId}`,
  mastersOf: (ledgerId: string) => `masters:${ledgerId}`,
  links: (scope: GrantScope, objectId: string) => `links:${scope}:${objectId}`,
  masterLinksOf: (ledgerId: string, delegate: string) => `master-links:${ledgerId}:${delegate}`,
  /** Names of scopes. */
  ownEvents: (ledgerId: string) => `own:${ledgerId}`,
  masterEvents: (masterId: string) => `master:${masterId}`,
  delegationEvents: (scope: GrantScope, objectId: string) => `delegation:${scope}:${objectId}`,
};

/** A line of `ledgersOf`. */
export interface LedgerLine {
  readonly ledgerId: string;
  readonly role: 'buyer' | 'supplier' | 'primary' | 'counterparty' | 'delegate';
  readonly scope?: GrantScope;
  readonly objectId?: string;
}

export interface MasterLine {
  readonly masterId: string;
}

/** Value of a `grant` cell. `grant` is null once it was revoked. */
export interface GrantCell {
  readonly grant: Grant | null;
  readonly linkId: string;
  readonly revokedAt: string | null;
}

/** A line of `grantChanges`: what the delegate holds from this seq on. */
type GrantChange = Pick<Grant, 'expiresAt'> | null;

export function parseGrantChange(text: string): GrantChange {
  const change = JSON.parse(text) as GrantChange | undefined;
  if (change === null) return null;
  if (change?.expiresAt === null || typeof change?.expiresAt === 'string') return change;
  throw new TypeError('This is no change of a grant.');
}

/** `facts` of the ledger. For GENESIS they are read from the event. */
export function projectionsOf(event: LedgerEvent, facts: LedgerFacts | null): Projection[] {
  const ledgerId = event.ledgerId;
  const delegation = delegationOf(event);
  const found: Projection[] = scopesUnder(event, delegation).map((scope) => ({ kind: 'scope', scope }));
  for (const command of event.commands) found.push({ kind: 'command', command });
  switch (event.eventType) {
    case 'GENESIS':
      found.push(...genesisProjections(ledgerFacts(event)));
      break;
    case 'LEDGER_CLOSED':
      found.push(cell(names.ledgerClosed(ledgerId), event.createdAt));
      break;
    case 'TRACELEDGER_MASTER_CREATED': {
      const master = masterFacts(event);
      found.push(cell(names.master(master.masterId), master));
      found.push(
        line(names.mastersOf(ledgerId), seqOrder(event.seq), { masterId: master.masterId } satisfies MasterLine),
      );
      break;
    }
    case 'MASTER_CLOSED':
      found.push(cell(names.masterClosed(event.master?.id ?? ''), event.createdAt));
      break;
  }
  if (delegation !== null)
    found.push(
      ...(delegation.isGrant ? grantProjections(event, delegation, facts) : revokeProjections(event, delegation)),
    );
  return found;
}

/** Whether payloads are objects, and what follows from the event can be derived. Anybody can make hashes that fit. */
export function hasReadablePayload(event: LedgerEvent): boolean {
  const { payload, actorSigPayload } = event;
  try {
    const isSignedReadable = actorSigPayload === null || isMembers(JSON.parse(actorSigPayload));
    return isSignedReadable && isMembers(JSON.parse(payload)) && projectionsOf(event, null).length > 0;
  } catch {
    return false;
  }
}

export function scopesOf(event: LedgerEvent): string[] {
  return scopesUnder(event, delegationOf(event));
}

function scopesUnder(event: LedgerEvent, delegation: Delegation | null): string[] {
  const own = event.master === null ? names.ownEvents(event.ledgerId) : names.masterEvents(event.master.id);
  return delegation === null ? [own] : [own, names.delegationEvents(delegation.scope, delegation.objectId)];
}

export interface ActorGrantChange {
  readonly scope: GrantScope;
  readonly objectId: string;
  readonly delegateActorId: string;
  /** What the actor holds from this event on. null: nothing. */
  readonly grant: GrantTerms | null;
}

/** Returns null for an event that changes no grant. Throws SyntaxError for a damaged payload that is no JSON. */
export function actorGrantChange(event: LedgerEvent): ActorGrantChange | null {
  const delegation = delegationOf(event);
  if (delegation === null) return null;
  const { scope, objectId, isGrant } = delegation;
  const grant = isGrant ? grantTerms(foldedGrant(event)) : null;
  return { scope, objectId, delegateActorId: payloadText(event, 'delegate_actor_id'), grant };
}

interface Delegation {
  readonly isGrant: boolean;
  readonly scope: GrantScope;
  readonly objectId: string;
}

function delegationOf(event: LedgerEvent): Delegation | null {
  const delegation = delegationOfType(event.eventType);
  if (delegation === undefined) return null;
  const objectIds = {
    organization: () => payloadText(event, 'organization_id'),
    ledger: () => event.ledgerId,
    master: () => event.master?.id ?? '',
  };
  return { ...delegation, objectId: objectIds[delegation.scope]() };
}

function genesisProjections(facts: LedgerFacts): Projection[] {
  const found: Projection[] = [cell(names.ledger(facts.ledgerId), facts)];
  const roles = [
    ['buyer', facts.buyerActorId],
    ['supplier', facts.supplierActorId],
    ['primary', facts.primaryActorId],
    ['counterparty', facts.counterpartyActorId],
  ] as const;
  const listed = new Set<string>();
  for (const [role, actorId] of roles) {
    if (actorId === null || listed.has(actorId)) continue;
    listed.add(actorId);
    const value: LedgerLine = { ledgerId: facts.ledgerId, role };
    found.push(line(names.ledgersOf(actorId), ledgerOrder(facts), value));
  }
  return found;
}

function grantProjections(
  event: LedgerEvent,
  { scope, objectId }: Delegation,
  facts: LedgerFacts | null,
): Projection[] {
  const grant = grantOf(event);
  const delegate = grant.delegateActorId;
  const held: GrantCell = { grant, linkId: grant.linkId, revokedAt: null };
  const found: Projection[] = [
    cell(names.grant(scope, objectId, delegate), held),
    line(names.links(scope, objectId), seqOrder(event.seq), grant),
    grantChange(event, scope, objectId, delegate, { expiresAt: grant.expiresAt }),
  ];
  const replaced = payloadText(event, 'replaces_link_id');
  if (replaced !== '') found.push(cell(names.linkEnded(replaced), event.createdAt));
  if (facts !== null) {
    const value: LedgerLine = { ledgerId: event.ledgerId, role: 'delegate', scope, objectId };
    found.push(line(names.ledgersOf(delegate), `${ledgerOrder(facts)}|${scope}|${objectId}`, value));
  }
  if (scope === 'master') {
    const value: MasterLine = { masterId: objectId };
    found.push(line(names.masterLinksOf(event.ledgerId, delegate), objectId, value));
  }
  return found;
}

function revokeProjections(event: LedgerEvent, { scope, objectId }: Delegation): Projection[] {
  const linkId = payloadText(event, 'link_id');
  const delegate = payloadText(event, 'delegate_actor_id');
  const ended: GrantCell = { grant: null, linkId, revokedAt: event.createdAt };
  return [
    cell(names.grant(scope, objectId, delegate), ended),
    cell(names.linkEnded(linkId), event.createdAt),
    grantChange(event, scope, objectId, delegate, null),
  ];
}

function grantChange(
  event: LedgerEvent,
  scope: GrantScope,
  objectId: string,
  delegate: string,
  change: GrantChange,
): Projection {
  return line(names.grantChanges(scope, objectId, delegate), seqOrder(event.seq), change);
}

export function ledgerOrder(facts: LedgerFacts): string {
  return `${facts.createdAt}|${facts.ledgerId}`;
}

export function seqOrder(seq: number): string {
  return String(seq).padStart(16, '0');
}

function payloadText(event: LedgerEvent, key: string): string {
  const value = (JSON.parse(event.payload) as Record<string, unknown>)[key];
  return typeof value === 'string' ? value : '';
}

function cell(key: string, value: unknown): Projection {
  return { kind: 'cell', key, value: JSON.stringify(value) };
}

function line(list: string, order: string, value: unknown): Projection {
  return { kind: 'line', list, order, value: JSON.stringify(value) };
}
