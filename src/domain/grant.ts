import { canonicalJson } from './canonical.ts';
import type { LedgerEvent } from './event.ts';
import { isoTime, parseRfc3339 } from './time.ts';

/** Where a delegation holds (spec: Delegation link, zones). */
export type GrantScope = 'organization' | 'ledger' | 'master';

export type Access = 'read' | 'write';

/**
 * How many delegates a ledger, organization or master may have at a time, and how many grants of each its ledger holds in memory: those in
 * force, and of those that have run out as many as there is room for.
 */
export const delegatesMax = 1_000;

/** A delegation in force until it is revoked or runs out. */
export interface Grant {
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  /** Canonical JSON, as granted. */
  readonly permissions: string;
  readonly access: Access;
  readonly grantedAt: string;
  /** null: until revoked. */
  readonly expiresAt: string | null;
  readonly grantedByActorId: string;
  readonly eventId: string;
}

const writingRoles = new Set(['OWNER', 'OPS', 'AGENT', 'FINANCE']);

/** `permissions.access` decides; without it the role does (decisions.md, section 5). */
export function grantAccess(role: string, permissions: { readonly access?: unknown }): Access {
  if (permissions.access === 'write') return 'write';
  if (permissions.access !== undefined) return 'read';
  return writingRoles.has(role) ? 'write' : 'read';
}

/** Whether the grant holds at a time (ISO); an expired one does not. */
export function holdsAt(grant: Grant, at: string): boolean {
  return grant.expiresAt === null || at < grant.expiresAt;
}

interface GrantedPayload {
  readonly link_id: string;
  readonly delegate_actor_id: string;
  readonly role: string;
  readonly permissions: { readonly access?: unknown };
  readonly granted_at: string;
  readonly expires_at?: string;
}

/** Reads the grant out of a *_DELEGATION_GRANTED event. */
export function grantOf(granted: LedgerEvent): Grant {
  const payload = JSON.parse(granted.payload) as GrantedPayload;
  return {
    linkId: payload.link_id,
    delegateActorId: payload.delegate_actor_id,
    role: payload.role,
    permissions: canonicalJson(payload.permissions),
    access: grantAccess(payload.role, payload.permissions),
    grantedAt: payload.granted_at,
    expiresAt: payload.expires_at === undefined ? null : isoOf(payload.expires_at),
    grantedByActorId: granted.actorId ?? '',
    eventId: granted.id,
  };
}

/** The event keeps the time as it was sent; here it is in the one form that sorts as text. */
function isoOf(time: string): string {
  const ms = parseRfc3339(time);
  if (ms === null) throw new Error(`a grant expires at ${time}, which is no time`);
  return isoTime(ms);
}
