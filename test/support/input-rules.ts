import type { AccessWorld } from './access-world.ts';
import * as bad from './bad-values.ts';
import type { InputCase } from './input-cases.ts';
import { refusal } from './input-transports.ts';
import type { Fields } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** A key under which the party has made an API key named `first`. */
export const usedKey = 'input rules: used';

const { nobody } = bad;
const invalid = (field: string | null) => refusal('invalid_argument', field);
const missing = (field: string) => refusal('invalid_argument', field, 'missing');

/** Rules that are about more than one field, or about who and what is named. */
export function namingCases({ party, partner, organizationId, targets }: AccessWorld): InputCase[] {
  const rule = (method: string, change: Fields, expected: string, of?: Fields): InputCase => ({
    method,
    change,
    expected,
    ...(of === undefined ? {} : { of }),
  });
  const opening = (of: Fields, expected: string) => rule('LedgerService.CreateLedger', of, expected, {});
  const otherWorld = partner.production.actorId;
  const { ledgerId, mine } = targets.order;
  return [
    rule('OrganizationService.EnrichOrganization', { trade_name: undefined }, invalid('body')),
    rule('EntityService.SetArlGate', { require_arl: undefined }, missing('require_arl')),
    rule('EntityService.OnboardEntity', { owner_actor_id: nobody }, refusal('not_found', 'owner_actor_id')),
    // Its form comes before who is named.
    rule(
      'EntityService.OnboardEntity',
      { owner_actor_id: nobody, public_key: 'x' },
      refusal('invalid_public_key', 'public_key'),
    ),
    rule('WebhookService.CreateWebhook', { ledger_id: nobody }, refusal('not_found', 'ledger_id')),

    opening({}, invalid('supplier_svc_id')),
    opening({ supplier_svc_id: partner.svcId, buyer_svc_id: party.svcId }, invalid('buyer_svc_id')),
    ...['supplier', 'buyer'].flatMap((side) => [
      opening({ [`${side}_svc_id`]: party.svcId }, invalid(`${side}_svc_id`)),
      opening({ [`${side}_actor_id`]: party.actorId }, invalid(`${side}_actor_id`)),
      opening({ [`${side}_svc_id`]: partner.svcId, [`${side}_actor_id`]: nobody }, invalid(`${side}_actor_id`)),
      // One actor is named once, though both names agree.
      opening(
        { [`${side}_svc_id`]: partner.svcId, [`${side}_actor_id`]: partner.actorId },
        invalid(`${side}_actor_id`),
      ),
      opening({ [`${side}_svc_id`]: `svc:actor:${nobody}` }, refusal('not_found', `${side}_svc_id`)),
      opening({ [`${side}_actor_id`]: nobody }, refusal('not_found', `${side}_actor_id`)),
      opening({ [`${side}_svc_id`]: `svc:actor:${otherWorld}` }, refusal('environment_mismatch', `${side}_svc_id`)),
      opening({ [`${side}_actor_id`]: otherWorld }, refusal('environment_mismatch', `${side}_actor_id`)),
    ]),
    opening({ supplier_actor_id: nobody, buyer_actor_id: partner.actorId }, refusal('permission_denied', null)),
    // Its own organization is none of the other side.
    opening(
      { supplier_svc_id: partner.svcId, supplier_organization_id: organizationId },
      invalid('supplier_organization_id'),
    ),
    opening({ supplier_svc_id: partner.svcId, buyer_organization_id: nobody }, invalid('buyer_organization_id')),

    ...[
      ['EngagementService.CreateEngagement', 'counterparty_actor_id'] as const,
      ['DelegationService.GrantOrganizationDelegation', 'delegate_actor_id'] as const,
      ['DelegationService.GrantLedgerDelegation', 'delegate_actor_id'] as const,
      ['DelegationService.GrantMasterDelegation', 'delegate_actor_id'] as const,
      ['MasterService.GrantMasterAccess', 'actor_id'] as const,
    ].flatMap(([method, field]) => [
      rule(method, { [field]: nobody }, refusal('not_found', field)),
      rule(method, { [field]: otherWorld }, refusal('environment_mismatch', field)),
      // The caller itself.
      rule(method, { [field]: party.actorId }, invalid(field)),
    ]),

    ...['DelegationService.GetDelegationSnapshot', 'DelegationService.GetDelegationProof'].flatMap((method) => [
      rule(method, {}, invalid('ledger_id'), {}),
      rule(method, { ledger_id: ledgerId, master_id: mine }, invalid('master_id'), {}),
      rule(method, { organization_id: organizationId, ledger_id: ledgerId }, invalid('ledger_id'), {}),
    ]),
    ...['LedgerService.ListLedgerEvents', 'MasterService.ListMasterEvents', 'DelegationService.GetDelegationProof'].map(
      (method) => rule(method, { order: 'desc', cursor: Buffer.from('a1').toString('base64url') }, invalid('cursor')),
    ),
  ];
}

/** What comes in headers, at each transport as that transport has them. */
export function headerCases(world: AccessWorld): InputCase[] {
  const { nobody: noHeaders, entity } = world.headers;
  const header = (name: string, kind: bad.Kind, method: string): InputCase[] =>
    kind.map(({ value, code, part }) => ({
      method,
      change: {},
      headers: { [name.toLowerCase()]: String(value) },
      expected: refusal(code, part === null ? null : name + part),
    }));
  const refused = (method: string, by: Headers, code: string): InputCase => ({
    method,
    change: {},
    by,
    expected: refusal(code, null),
  });
  const bearers = [
    '',
    'Bearer',
    'Basic abc',
    'Bearer a b',
    `${world.party.bearer.authorization}x`,
    'Bearer svc_sk_test_x',
  ];
  const asEntity = 'EngagementService.CreateEngagement';
  const noIdentity: readonly Headers[] = [
    { 'x-actor-id': 'x', 'x-actor-type': 'device' },
    { 'x-actor-id': String(entity['x-actor-id']).toUpperCase(), 'x-actor-type': 'device' },
    { 'x-actor-id': nobody, 'x-actor-type': 'device' },
    { 'x-actor-id': world.party.actorId, 'x-actor-type': 'service' },
    { 'x-actor-id': String(entity['x-actor-id']) },
    { ...entity, 'x-actor-type': 'robot' },
    { ...entity, 'x-actor-type': 'service' },
    { ...world.party.bearer, 'x-actor-type': 'robot' },
  ];
  return [
    ...['DeveloperService.CreateApiKey', 'LedgerService.CreateLedger', 'MasterService.AppendEvent'].flatMap((method) =>
      header('Idempotency-Key', bad.idempotencyKey, method),
    ),
    {
      method: 'DeveloperService.CreateApiKey',
      change: { name: 'another' },
      headers: { 'idempotency-key': usedKey },
      expected: refusal('idempotency_key_reused', 'Idempotency-Key'),
    },
    ...header('X-Delivery-Chain', bad.deliveryChain, 'MasterService.AppendEvent'),
    refused('DeveloperService.CreateApiKey', noHeaders, 'unauthenticated'),
    refused(asEntity, noHeaders, 'unauthenticated'),
    // A bad key is never passed over for other headers.
    ...bearers.map((authorization) => refused(asEntity, { ...entity, authorization }, 'invalid_api_key')),
    refused('DeveloperService.CreateApiKey', entity, 'unauthenticated'),
    ...noIdentity.map((by) => refused(asEntity, by, 'invalid_actor_identity')),
  ];
}
