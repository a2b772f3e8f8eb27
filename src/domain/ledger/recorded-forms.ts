import type { LedgerType } from '../event/event.ts';
import { accessRole, type GrantScope } from '../event/grant.ts';
import { isMembers, type Members } from '../event/row.ts';
import { grantAdditions, grantObject } from '../event/service-events.ts';
import { shownName } from '../event/shown-name.ts';
import { isLabel } from '../values/fields.ts';
import { parseRfc3339 } from '../values/time.ts';
import { isUuid } from '../values/uuid-form.ts';

/**
 * The members that payloads of GENESIS and grants can have, and their forms. A text says what is wrong, null that
 * nothing is. All that any version wrote passes.
 */

interface Form {
  readonly what: string;
  test(value: unknown): boolean;
}
type Forms = Readonly<Record<string, Form>>;

const id: Form = { what: 'a UUID', test: (value) => typeof value === 'string' && isUuid(value) };
const label: Form = { what: 'a label', test: isLabel };
const time: Form = {
  what: 'a time (RFC 3339)',
  test: (value) => typeof value === 'string' && parseRfc3339(value) !== null,
};

const ledgers: Readonly<Record<LedgerType, { readonly required: Forms; readonly optional: Forms }>> = {
  ORDER: {
    required: { buyer_actor_id: id, supplier_actor_id: id },
    optional: { buyer_organization_id: id, supplier_organization_id: id },
  },
  FACILITY_ROOT: { required: { primary_actor_id: id, organization_id: id }, optional: {} },
  ENTITY_ROOT: { required: { primary_actor_id: id, counterparty_actor_id: id, entity_id: id }, optional: {} },
  ENGAGEMENT: {
    required: { primary_actor_id: id, counterparty_actor_id: id, purpose: label },
    optional: { entity_id: id },
  },
};

export function genesisFault(payload: Members): string | null {
  const type = payload.ledger_type;
  if (typeof type !== 'string' || !Object.hasOwn(ledgers, type))
    return 'payload.ledger_type is none of the types of ledgers';
  const { required, optional } = ledgers[type as LedgerType];
  const { ledger_type: _, ...fields } = payload;
  return formFault(fields, required, optional);
}

/** The payload of a grant in which grantFault finds nothing. */
export interface RecordedGrant {
  readonly link_id: string;
  readonly delegate_actor_id: string;
  readonly role: string;
  readonly permissions: Members;
  readonly expires_at?: string;
}

const grant = { delegate_actor_id: id, role: label, link_id: id };

export function grantFault(payload: Members, scope: GrantScope): string | null {
  const { access, permissions, granted_at: _, ...fields } = payload;
  const [object = ''] = Object.keys(grantObject(scope, ''));
  if (!isMembers(permissions)) return 'payload.permissions must be an object';
  const given = permissions.access;
  if (given !== undefined && given !== 'read' && given !== 'write')
    return 'payload.permissions.access must be "read" or "write"';
  const isDerived = given === access && Object.keys(permissions).length === 1;
  if (access !== undefined && !isDerived) return 'payload.permissions is not that of the access';
  if (access !== undefined && fields.role !== accessRole) return 'payload.role is not that of the access';
  return formFault(fields, { [object]: id, ...grant }, { expires_at: time, replaces_link_id: id });
}

/** What makes a grant this one: all that was asked for, and its link. */
export function grantIdentity(eventType: string, payload: Members): string {
  const lasting = Object.entries(payload).filter(([name]) => name === 'link_id' || !grantAdditions.has(name));
  return JSON.stringify([eventType, lasting]);
}

function formFault(fields: Members, required: Forms, optional: Forms): string | null {
  const forms = new Map(Object.entries({ ...required, ...optional }));
  const missing = Object.keys(required).find((name) => !Object.hasOwn(fields, name));
  if (missing !== undefined) return `payload.${missing} is missing`;
  for (const [name, value] of Object.entries(fields)) {
    const form = forms.get(name);
    if (form === undefined) return `payload.${shownName(name)} is not what the service writes here`;
    if (!form.test(value)) return `payload.${name} must be ${form.what}`;
  }
  return null;
}
