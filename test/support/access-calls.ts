import type { AccessRow, CallerName } from './access-matrix.ts';
import { type AccessTarget, type AccessWorld, newActorId } from './access-world.ts';
import { newOrganization, onboarding } from './organizations.ts';
import { newDevice, newKeyPair } from './parties.ts';
import { done, type Fields } from './parties-rest.ts';

/** What a call of the matrix is about; what it ends is made for it alone where the call is expected to succeed. */
interface Cell {
  readonly world: AccessWorld;
  readonly row: AccessRow;
  readonly caller: CallerName;
  readonly succeeds: boolean;
}

type Request = (cell: Cell) => Fields | Promise<Fields>;

const unknownId = '0199aaaa-0000-7000-8000-00000000dead';
/** Nothing listens there: what is delivered is not this test's affair. */
const receiverUrl = 'http://127.0.0.1:9/';

/** By the party, over REST. */
const byParty = ({ world }: Cell, method: string, path: string, body?: Fields) =>
  done(world.base, method, path, { headers: world.party.bearer, ...(body === undefined ? {} : { body }) });

function targetOf({ world, row }: Cell): AccessTarget {
  if (row.target === null) throw new Error(`${row.name} has no target`);
  return world.targets[row.target];
}

const nothing: Request = () => ({});
const aLedger: Request = (cell) => ({ ledger_id: targetOf(cell).ledgerId });
const aMaster: Request = (cell) => ({ uuid: targetOf(cell).mine });
const partyUri: Request = ({ world }) => ({ svc_id: world.party.svcId });
const partyActor: Request = ({ world }) => ({ actor_id: world.party.actorId });
const entityActor: Request = ({ world }) => ({ actor_id: world.entity.actorId });
const organization: Request = ({ world }) => ({ organization_id: world.organizationId });

const scoped: Request = (cell) => {
  switch (cell.row.scope) {
    case 'organization':
      return { organization_id: cell.world.organizationId };
    case 'ledger':
      return { ledger_id: targetOf(cell).ledgerId };
    case 'master':
      return { master_id: targetOf(cell).mine };
    case null:
      throw new Error(`${cell.row.name} has no scope`);
  }
};

/** A ledger of the target's kind, to be closed. */
async function closableLedger(cell: Cell): Promise<Fields> {
  const { world, row } = cell;
  if (!cell.succeeds) return aLedger(cell);
  switch (row.target) {
    case 'order': {
      const supplier_actor_id = await counterpartyOf(world);
      return { ledger_id: (await byParty(cell, 'POST', '/v1/ledgers', { supplier_actor_id })).text('id') };
    }
    case 'root':
      return { ledger_id: (await newOrganization(world.base, world.party)).frlLedgerId };
    default: {
      const body = { counterparty_actor_id: world.party.actorId, purpose: 'SERVICE' };
      const made = await done(world.base, 'POST', '/v1/engagements', { headers: world.entity.headers, body });
      return { ledger_id: made.text('ledger_id') };
    }
  }
}

async function counterpartyOf({ base, headers }: AccessWorld): Promise<string> {
  return (await done(base, 'GET', '/v1/developer/me', { headers: headers.counterparty })).text('actor_id');
}

async function closableMaster(cell: Cell): Promise<Fields> {
  if (!cell.succeeds) return aMaster(cell);
  const body = { ledger_id: targetOf(cell).ledgerId, business_ref: 'R-2', scope: 'ORDER' };
  return { uuid: (await byParty(cell, 'POST', '/v1/traceledger/master', body)).text('uuid') };
}

/** A grant to someone new. */
async function granting(cell: Cell, on: Fields): Promise<Fields> {
  return { ...on, delegate_actor_id: await newActorId(cell.world.base), role: 'AUDITOR' };
}

/** A grant to revoke: one made for it, or the victim's. */
async function revoking(cell: Cell, scope: string, on: Fields): Promise<Fields> {
  if (!cell.succeeds) return { ...on, delegate_actor_id: cell.world.victimId };
  const grant = await granting(cell, on);
  await byParty(cell, 'POST', `/v1/delegation/${scope}`, grant);
  return { ...on, delegate_actor_id: grant.delegate_actor_id };
}

/** A device of the party's with a key. */
async function deviceKey(cell: Cell): Promise<Fields> {
  const device = await newDevice(cell.world.base, { owner: cell.world.party, keyed: true });
  return { actor_id: device.actorId, kid: device.kid };
}

async function firstOfMaster(cell: Cell): Promise<Fields> {
  const page = await byParty(cell, 'GET', `/v1/traceledger/master/${targetOf(cell).mine}/events?limit=1`);
  return page.rows('events')[0] ?? {};
}

async function webhookOfParty(cell: Cell): Promise<{ id: string }> {
  return { id: (await byParty(cell, 'POST', '/v1/webhooks', { url: receiverUrl })).text('id') };
}

const appended = { event_type: 'INSPECTED', payload: { found: 'nothing' } };

/** The request of each method, by `Service.Method`. */
export const accessRequests: Readonly<Record<string, Request>> = {
  'HealthService.GetHealth': nothing,
  'HealthService.GetTerms': nothing,
  'SandboxService.RunSandbox': nothing,
  'DeveloperService.RegisterDeveloper': () => ({ name: 'N', email: 'n@example.com', region: 'eu' }),
  'DeveloperService.GetDeveloper': nothing,
  'DeveloperService.CreateApiKey': () => ({ name: 'another' }),
  'DeveloperService.RevokeApiKey': async (cell) => ({
    key_id: (await byParty(cell, 'POST', '/v1/developer/keys', { name: 'to end' })).text('key_id'),
  }),
  'ActorService.CreateActor': nothing,
  'ActorService.LookupActor': partyUri,
  'ActorService.GetActor': partyActor,
  'ActorService.ListActorKeys': partyActor,
  'ActorService.EnrollActorKey': async ({ world }) => ({
    actor_id: (await newDevice(world.base, { owner: world.party })).actorId,
    public_key: newKeyPair().publicKey,
  }),
  'ActorService.PreferActorKey': deviceKey,
  'ActorService.RevokeActorKey': deviceKey,
  'ActorService.ListNetworkActors': nothing,
  'ResolverService.ResolveActor': ({ world }) => ({ svc_uri: world.party.svcId }),
  'ResolverService.GetAuthority': nothing,
  'OrganizationService.OnboardOrganization': () => onboarding,
  'OrganizationService.ListOrganizations': partyActor,
  'OrganizationService.GetOrganization': ({ world }) => ({ id: world.organizationId }),
  'OrganizationService.EnrichOrganization': ({ world }) => ({
    organization_id: world.organizationId,
    trade_name: 'Trade',
  }),
  'EntityService.OnboardEntity': ({ caller }) => ({ display_name: 'P', entity_type: 'TAG', unique_id: caller }),
  'EntityService.ListEntities': nothing,
  'EntityService.GetEntity': entityActor,
  'EntityService.CreateRootLedger': nothing,
  'EntityService.GetRootLedger': entityActor,
  'EntityService.CloseRootLedger': entityActor,
  'EntityService.SetArlGate': () => ({ require_arl: false }),
  'EngagementService.CreateEngagement': ({ world }) => ({
    counterparty_actor_id: world.partner.actorId,
    purpose: 'SERVICE',
  }),
  'EngagementService.GetEngagement': aLedger,
  'EngagementService.CloseEngagement': closableLedger,
  'LedgerService.CreateLedger': ({ world }) => ({ supplier_svc_id: world.partner.svcId }),
  'LedgerService.ListLedgers': nothing,
  'LedgerService.GetLedger': aLedger,
  'LedgerService.ListLedgerEvents': aLedger,
  'LedgerService.FollowLedgerEvents': aLedger,
  'LedgerService.CloseLedger': closableLedger,
  'MasterService.CreateMaster': (cell) => ({
    ledger_id: targetOf(cell).ledgerId,
    business_ref: 'R-3',
    scope: 'PROCESS',
  }),
  'MasterService.ListMasters': aLedger,
  'MasterService.GetMaster': aMaster,
  'MasterService.AppendEvent': (cell) => ({ uuid: targetOf(cell).mine, ...appended }),
  'MasterService.AppendEvents': (cell) => ({ client_index: 0, uuid: targetOf(cell).mine, ...appended }),
  'MasterService.ListMasterEvents': aMaster,
  'MasterService.FollowMasterEvents': aMaster,
  'MasterService.CloseMaster': closableMaster,
  'MasterService.GrantMasterAccess': async (cell) => ({
    uuid: targetOf(cell).mine,
    actor_id: await newActorId(cell.world.base),
    access: 'read',
  }),
  'MasterService.ListMasterAccess': aMaster,
  'MasterService.RevokeMasterAccess': async (cell) => {
    const { mine, victimLinkId } = targetOf(cell);
    if (!cell.succeeds) return { uuid: mine, link_id: victimLinkId };
    const body = { actor_id: await newActorId(cell.world.base), access: 'read' };
    const made = await byParty(cell, 'POST', `/v1/traceledger/master/${mine}/access`, body);
    return { uuid: mine, link_id: made.text('link_id') };
  },
  'DelegationService.GrantOrganizationDelegation': async (cell) => granting(cell, await organization(cell)),
  'DelegationService.RevokeOrganizationDelegation': async (cell) =>
    revoking(cell, 'organization', await organization(cell)),
  'DelegationService.ListOrganizationDelegations': organization,
  'DelegationService.GrantLedgerDelegation': async (cell) => granting(cell, await aLedger(cell)),
  'DelegationService.RevokeLedgerDelegation': async (cell) => revoking(cell, 'ledger', await aLedger(cell)),
  'DelegationService.ListLedgerDelegations': aLedger,
  'DelegationService.GrantMasterDelegation': (cell) => granting(cell, { master_id: targetOf(cell).mine }),
  'DelegationService.RevokeMasterDelegation': (cell) => revoking(cell, 'master', { master_id: targetOf(cell).mine }),
  'DelegationService.ListMasterDelegations': (cell) => ({ master_id: targetOf(cell).mine }),
  'DelegationService.GetDelegationSnapshot': scoped,
  'DelegationService.GetDelegationProof': scoped,
  'ProofService.GetLedgerCheckpoint': aLedger,
  'ProofService.GetLedgerInclusion': async (cell) => {
    const ledger = await aLedger(cell);
    if (cell.row.scope !== 'master') return { ...ledger, seq: 0, size: 1 };
    const { id, seq } = await firstOfMaster(cell);
    return { ...ledger, event_id: id, size: Number(seq) + 1 };
  },
  'ProofService.GetLedgerConsistency': async (cell) => ({ ...(await aLedger(cell)), from: 1 }),
  'ProofService.GetMasterCheckpoint': aMaster,
  'ProofService.GetMasterInclusion': async (cell) => ({ ...(await aMaster(cell)), master_seq: 0 }),
  'ProofService.GetMasterConsistency': async (cell) => ({ ...(await aMaster(cell)), from: 1 }),
  'AuditService.ListAccessEvents': aLedger,
  'WebhookService.CreateWebhook': (cell) => ({ url: receiverUrl, ledger_id: targetOf(cell).ledgerId }),
  'WebhookService.ListWebhooks': nothing,
  'WebhookService.DeleteWebhook': webhookOfParty,
  'WebhookService.ListWebhookDeliveries': webhookOfParty,
  'WebhookService.TestWebhook': webhookOfParty,
  'WebhookService.RedeliverWebhook': async (cell) => {
    const { id } = await webhookOfParty(cell);
    if (!cell.succeeds) return { id, delivery_id: unknownId };
    return { id, delivery_id: (await byParty(cell, 'POST', `/v1/webhooks/${id}/test`, {})).text('id') };
  },
};
