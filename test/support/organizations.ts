import type { Party } from './parties.ts';
import { done } from './parties-rest.ts';

export const onboarding = {
  legal_name: 'ACME',
  country: 'DE',
  vat_tax_number: 'DE1',
  primary_email: 'a@example.com',
  terms_version: '1.0',
  declaration_hash: 'x',
};

export interface Organization {
  readonly organizationId: string;
  readonly frlLedgerId: string;
}

export async function newOrganization(base: string, owner: Party): Promise<Organization> {
  const made = await done(base, 'POST', '/v1/onboarding/organization', owner, onboarding);
  return { organizationId: made.text('organization_id'), frlLedgerId: made.text('frl_ledger_id') };
}
