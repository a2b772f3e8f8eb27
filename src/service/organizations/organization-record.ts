import type { RecordStore } from '../../store/record-store.ts';
import type { World } from '../calls/call.ts';
import type { ChangedRecord } from '../idempotency/change-once.ts';
import { type Collection, type CollectionRules, collection } from '../records/collection.ts';
import { anyObject, listOf, optional, text, worldOrNull } from '../records/record-form.ts';

/** The onboarding fields as given, by their names in the API. */
export interface OnboardingFields {
  readonly legal_name: string;
  readonly country: string;
  readonly vat_tax_number: string;
  readonly primary_email: string;
  readonly terms_version: string;
  readonly declaration_hash: string;
  readonly region?: string | undefined;
  readonly city?: string | undefined;
  readonly supplier_name?: string | undefined;
  readonly registered_address?: string | undefined;
}

export interface OrganizationRecord extends ChangedRecord {
  readonly organizationId: string;
  readonly actorId: string;
  readonly world: World | null;
  readonly requestId: string;
  readonly frlLedgerId: string;
  readonly createdAt: string;
  readonly onboarding: OnboardingFields;
  /** Fields that later calls have set, by their names in the API. */
  readonly enriched: Readonly<Record<string, string>>;
}

export const organizationRules: CollectionRules<OrganizationRecord> = {
  kind: 'organization',
  form: {
    organizationId: text,
    actorId: text,
    world: worldOrNull,
    requestId: text,
    frlLedgerId: text,
    createdAt: text,
    onboarding: anyObject,
    enriched: anyObject,
    changedBy: optional(listOf(text)),
  },
  id: (organization) => organization.organizationId,
  lookups: (organization) => [{ name: 'actor', value: organization.actorId, order: organization.createdAt }],
};

export function organizationCollection(store: RecordStore): Collection<OrganizationRecord> {
  return collection(store, organizationRules);
}

/** The actor's oldest organization. null if it has none. */
export function firstOrganizationOf(organizations: Collection<OrganizationRecord>, actorId: string) {
  return organizations.first('actor', actorId);
}

/** The organization with this id, or the oldest one of the actor with this id. null if there is none. */
export async function findOrganization(organizations: Collection<OrganizationRecord>, id: string) {
  return (await organizations.get(id))?.value ?? firstOrganizationOf(organizations, id);
}
