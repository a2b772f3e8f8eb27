import { canonicalJson } from '../json/canonical.ts';
import { isoTime, parseRfc3339 } from '../values/time.ts';
import type { LedgerEvent } from './event.ts';

/** What a grant covers: an organization (its root ledger), one ledger, or one master. */
export type GrantScope = 'organization' | 'ledger' | 'master';

type Access = 'read' | 'write';

/**
 * Of a ledger, organization or master at a time. As many grants, expired ones included, are held in memory and in
 * snapshots, as FoldedGrant: some 250 KB.
 */
export const delegatesMax = 1_000;
/**
 * Bytes of `permissions` in canonical form. The log, and the cells and lines of grants, have them; no fold holds them.
 * Grants from before this bound may have more.
 */
export const permissionsBytesMax = 4 * 1024;

export interface Grant {
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  /** Canonical JSON, as granted. */
  readonly permissions: string;
  readonly access: Access;
  readonly grantedAt: string;
  /** ISO time. null: until it is revoked. */
  readonly expiresAt: string | null;
  readonly grantedByActorId: string;
  readonly eventId: string;
}

/** The part of a grant that decides access. Readers are given this part, and not `permissions`, which may be large. */
export type GrantTerms = Pick<Grant, 'role' | 'access' | 'expiresAt'>;

export function grantTerms({ role, access, expiresAt }: GrantTerms): GrantTerms {
  return { role, access, expiresAt };
}

/** What the fold of a ledger or master keeps of a grant. Of `permissions` that is `access`: nothing else decides. */
export type FoldedGrant = Pick<Grant, 'linkId' | 'delegateActorId' | 'role' | 'access' | 'grantedAt' | 'expiresAt'>;

export function foldedGrant(granted: LedgerEvent): FoldedGrant {
  return foldedGrantOf(payloadOf(granted));
}

/** The role of a grant that was asked for by its access (POST …/access). */
export const accessRole = 'ACCESS';

const writingRoles = new Set(['OWNER', 'OPS', 'AGENT', 'FINANCE']);

/** `permissions.access` decides. Without it the role decides. */
export function grantAccess(role: string, permissions: { readonly access?: unknown }): Access {
  if (permissions.access === 'write') return 'write';
  if (permissions.access !== undefined) return 'read';
  return writingRoles.has(role) ? 'write' : 'read';
}

export function holdsAt(grant: Pick<Grant, 'expiresAt'>, at: string): boolean {
  return grant.expiresAt === null || at < grant.expiresAt;
}

/** Whether fewer than `delegatesMax` other delegates of an object hold a grant at that time. `grants`: by delegate. */
export function hasRoomFor(
  delegateActorId: string,
  grants: ReadonlyMap<string, Pick<Grant, 'delegateActorId' | 'expiresAt'>>,
  at: string,
): boolean {
  if (grants.size < delegatesMax) return true;
  let others = 0;
  for (const held of grants.values()) if (held.delegateActorId !== delegateActorId && holdsAt(held, at)) others += 1;
  return others < delegatesMax;
}

interface GrantedPayload {
  readonly link_id: string;
  readonly delegate_actor_id: string;
  readonly role: string;
  readonly permissions: { readonly access?: unknown };
  readonly granted_at: string;
  readonly expires_at?: string;
}

export function grantOf(granted: LedgerEvent): Grant {
  const payload = payloadOf(granted);
  // The order of the fields is that of stored cells.
  const { linkId, delegateActorId, role, ...terms } = foldedGrantOf(payload);
  return {
    linkId,
    delegateActorId,
    role,
    permissions: canonicalJson(payload.permissions),
    ...terms,
    grantedByActorId: granted.actorId ?? '',
    eventId: granted.id,
  };
}

function payloadOf(granted: LedgerEvent): GrantedPayload {
  return JSON.parse(granted.payload) as GrantedPayload;
}

function foldedGrantOf(payload: GrantedPayload): FoldedGrant {
  return {
    linkId: payload.link_id,
    delegateActorId: payload.delegate_actor_id,
    role: payload.role,
    access: grantAccess(payload.role, payload.permissions),
    grantedAt: payload.granted_at,
    expiresAt: payload.expires_at === undefined ? null : isoOf(payload.expires_at),
  };
}

/** The event keeps a time as it was sent; a grant has it in the ISO form that sorts as text. */
function isoOf(time: string): string {
  const ms = parseRfc3339(time);
  if (ms === null) throw new Error(`a grant expires at ${time}, which is no time`);
  return isoTime(ms);
}
