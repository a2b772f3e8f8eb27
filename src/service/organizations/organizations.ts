import { invalidField, LedgerError, notFound } from '../../domain/errors.ts';
import { organizationRegisteredPayload } from '../../domain/event/service-events.ts';
import { checkCountry, checkEmail, checkName, checkUrl, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import { uuidV5 } from '../../domain/values/uuid.ts';
import type {
  EnrichOrganizationRequest,
  OnboardOrganizationRequest,
  OrganizationService,
} from '../../gen/svc/v1/organizations_pb.ts';
import type { KeyedMutex } from '../../store/keyed-mutex.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { callerOf } from '../calls/caller.ts';
import type { HandlersOf } from '../calls/handlers.ts';
import { checkListPage } from '../calls/list-page.ts';
import { changeOnce } from '../idempotency/change-once.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { changingCollection } from '../records/collection.ts';
import { facts, type LedgerOpening } from '../writing/ledger-opening.ts';
import {
  findOrganization,
  type OnboardingFields,
  type OrganizationRecord,
  organizationRules,
} from './organization-record.ts';

export function organizationService(
  records: RecordStore,
  open: LedgerOpening,
  reading: LedgerReading,
  changes: KeyedMutex,
) {
  const organizations = changingCollection(records, organizationRules, changes);

  /** The organization, if the actor is its owner or a delegate. Throws `not_found` and `access_expired`. */
  const readable = async (organization: OrganizationRecord | null, actorId: string): Promise<OrganizationRecord> => {
    if (organization === null) throw notFound('organization');
    if (organization.actorId === actorId) return organization;
    await reading.readableOrganization(organization.frlLedgerId, actorId);
    return organization;
  };

  return {
    onboardOrganization: async (request, call) => {
      const caller = callerOf(call);
      const onboarding = checkOnboarding(request);
      const organizationId = call.newId();
      const requestId = call.newId();
      const frlLedgerId = uuidV5(organizationId, 'facility-root');
      const record: OrganizationRecord = {
        organizationId,
        actorId: caller.actorId,
        world: caller.world,
        requestId,
        frlLedgerId,
        createdAt: isoTime(call.now),
        onboarding,
        enriched: {},
      };
      const root = facts('FACILITY_ROOT', { primaryActorId: caller.actorId, organizationId });
      await open(call, frlLedgerId, root, organizationRegisteredPayload(organizationId, requestId, { ...onboarding }));
      // The record makes the organization visible, so it is written last.
      await afterPartialWrite(organizations.create(record));
      return { requestId, organizationId, frlLedgerId, status: 'APPROVED' };
    },

    listOrganizations: async (request, call) => {
      const caller = callerOf(call);
      const actorId = request.actorId === undefined ? caller.actorId : checkUuid('actor_id', request.actorId);
      const page = checkListPage(request);
      const own = actorId === caller.actorId ? await organizations.find(call.walk, 'actor', actorId, page) : [];
      return {
        actorId,
        count: own.length,
        organizations: own.map(({ organizationId, onboarding }) => ({
          organizationId,
          legalName: onboarding.legal_name,
        })),
      };
    },

    getOrganization: async (request, call) => {
      const id = checkUuid('id', request.id);
      const { organizationId, actorId, requestId, frlLedgerId, createdAt, onboarding, enriched } = await readable(
        await findOrganization(organizations, id),
        callerOf(call).actorId,
      );
      const now = { ...onboarding, ...enriched };
      return {
        organizationId,
        actorId,
        legalName: now.legal_name,
        country: now.country,
        status: 'APPROVED',
        frlLedgerId,
        requestId,
        vatTaxNumber: now.vat_tax_number,
        primaryEmail: now.primary_email,
        termsVersion: now.terms_version,
        declarationHash: now.declaration_hash,
        region: now.region,
        city: now.city,
        supplierName: now.supplier_name,
        registeredAddress: now.registered_address,
        tradeName: enriched.trade_name,
        postalCode: enriched.postal_code,
        website: enriched.website,
        phone: enriched.phone,
        createdAt,
      };
    },

    enrichOrganization: async (request, call) => {
      const { actorId } = callerOf(call);
      const organizationId = checkUuid('organization_id', request.organizationId);
      const fields = checkEnrichment(request);
      const found = await readable((await organizations.get(organizationId))?.value ?? null, actorId);
      if (found.actorId !== actorId) {
        throw new LedgerError('permission_denied', 'An organization is enriched by its owner alone.');
      }
      await organizations.update(
        organizationId,
        changeOnce(call, (held) => ({ ...held, enriched: { ...held.enriched, ...fields } })),
        call.signal,
      );
      return { organizationId, status: 'enriched' };
    },
  } satisfies Partial<HandlersOf<typeof OrganizationService>>;
}

function checkOnboarding(request: OnboardOrganizationRequest): OnboardingFields {
  const optional = (field: string, value: string | undefined) =>
    value === undefined ? {} : { [field]: checkName(field, value) };
  return {
    legal_name: checkName('legal_name', request.legalName),
    country: checkCountry('country', request.country),
    vat_tax_number: checkName('vat_tax_number', request.vatTaxNumber),
    primary_email: checkEmail('primary_email', request.primaryEmail),
    terms_version: checkName('terms_version', request.termsVersion),
    declaration_hash: checkName('declaration_hash', request.declarationHash),
    ...optional('region', request.region),
    ...optional('city', request.city),
    ...optional('supplier_name', request.supplierName),
    ...optional('registered_address', request.registeredAddress),
  };
}

function checkEnrichment(request: EnrichOrganizationRequest): Record<string, string> {
  const given = {
    trade_name: [request.tradeName, checkName],
    postal_code: [request.postalCode, checkName],
    city: [request.city, checkName],
    region: [request.region, checkName],
    primary_email: [request.primaryEmail, checkEmail],
    registered_address: [request.registeredAddress, checkName],
    website: [request.website, checkUrl],
    phone: [request.phone, checkName],
  } as const;
  const fields: Record<string, string> = {};
  for (const [field, [value, check]] of Object.entries(given))
    if (value !== undefined) fields[field] = check(field, value);
  if (Object.keys(fields).length === 0) throw invalidField('body', `at least one of ${Object.keys(given).join(', ')}`);
  return fields;
}
