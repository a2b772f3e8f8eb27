/**
 * The access matrix: a line for each method, a letter for each caller. `@` names the ledger of the call, `()` its
 * scope.
 */

export const delegateNames = [
  'organizationReader',
  'organizationWriter',
  'organizationRevoked',
  'ledgerReader',
  'ledgerWriter',
  'ledgerOwner',
  'ledgerRevoked',
  'masterReader',
  'masterWriter',
  'masterRevoked',
  'masterExpired',
  'siblingWriter',
] as const;

/** The callers, in the order of the letters below. */
export const callerNames = [
  'nobody',
  'revokedKey',
  'stranger',
  'party',
  'counterparty',
  ...delegateNames,
  'entity',
  'otherEntity',
  'keyedEntityUnsigned',
  'otherEnvironment',
] as const;
export type CallerName = (typeof callerNames)[number];

const outcomes: Readonly<Record<string, string>> = {
  '.': 'ok',
  U: 'unauthenticated',
  K: 'invalid_api_key',
  S: 'signature_required',
  '4': 'not_found',
  '3': 'permission_denied',
  X: 'access_expired',
  E: 'environment_mismatch',
};

/*
 * `party` is the buyer of the order, the founder of the organization and the engagement's counterparty; `counterparty`
 * is the order's supplier, `entity` the engagement's primary. Organization grants are of the founder's organization,
 * which is also on the order.
 *
 *                                                 key  parties organ. ledger master  entity env */
const lines = `
HealthService.GetHealth                            ..   ...   ...   ....   .....   ...   .
HealthService.GetTerms                             ..   ...   ...   ....   .....   ...   .
SandboxService.RunSandbox                          ..   ...   ...   ....   .....   ...   .
DeveloperService.RegisterDeveloper                 ..   ...   ...   ....   .....   ...   .
DeveloperService.GetDeveloper                      UK   ...   ...   ....   .....   UUU   .
DeveloperService.CreateApiKey                      UK   ...   ...   ....   .....   UUU   .
DeveloperService.RevokeApiKey                      UK   4.4   444   4444   44444   UUU   4
ActorService.CreateActor                           ..   ...   ...   ....   .....   ...   .
ActorService.LookupActor                           ..   ...   ...   ....   .....   ...   .
ActorService.GetActor                              ..   ...   ...   ....   .....   ...   .
ActorService.ListActorKeys                         ..   ...   ...   ....   .....   ...   .
ActorService.EnrollActorKey                        UK   3.3   333   3333   33333   UUU   3
ActorService.PreferActorKey                        UK   3.3   333   3333   33333   UUU   3
ActorService.RevokeActorKey                        UK   3.3   333   3333   33333   UUU   3
ActorService.ListNetworkActors                     UK   ...   ...   ....   .....   UUU   .
ResolverService.ResolveActor                       ..   ...   ...   ....   .....   ...   .
ResolverService.GetAuthority                       ..   ...   ...   ....   .....   ...   .
OrganizationService.OnboardOrganization            UK   ...   ...   ....   .....   UUU   .
OrganizationService.ListOrganizations              UK   ...   ...   ....   .....   UUU   .
OrganizationService.GetOrganization                UK   4.4   ..4   4444   44444   UUU   4
OrganizationService.EnrichOrganization             UK   4.4   334   4444   44444   UUU   4
EntityService.OnboardEntity                        ..   ...   ...   ....   .....   ...   .
EntityService.ListEntities                         ..   ...   ...   ....   .....   ...   .
EntityService.GetEntity                            ..   ...   ...   ....   .....   ...   .
EntityService.CreateRootLedger                     UK   333   333   3333   33333   ..S   3
EntityService.GetRootLedger                        UK   444   444   4444   44444   .4S   4
EntityService.SetArlGate                           UK   333   333   3333   33333   ..S   3
EntityService.CloseRootLedger                      UK   444   444   4444   44444   .4S   4
EngagementService.CreateEngagement                 UK   ...   ...   ....   .....   ..S   E
EngagementService.GetEngagement@order              UK   444   444   4444   44444   44S   4
EngagementService.GetEngagement@root               UK   444   444   4444   44444   44S   4
EngagementService.GetEngagement@engagement         UK   4.4   444   ...4   334X3   .4S   4
EngagementService.CloseEngagement@order            UK   444   444   4444   44444   44S   4
EngagementService.CloseEngagement@engagement       UK   4.4   444   3334   334X3   .4S   4
LedgerService.CreateLedger                         UK   ...   ...   ....   .....   UUU   E
LedgerService.ListLedgers                          UK   ...   ...   ....   .....   UUU   .
LedgerService.GetLedger@order                      UK   4..   444   ...4   ..4X.   UUU   4
LedgerService.GetLedger@root                       UK   4.4   ..4   ...4   ..4X.   UUU   4
LedgerService.GetLedger@engagement                 UK   4.4   444   ...4   ..4X.   UUU   4
LedgerService.ListLedgerEvents@order               UK   4..   444   ...4   ..4X.   44S   4
LedgerService.ListLedgerEvents@root                UK   4.4   ..4   ...4   ..4X.   44S   4
LedgerService.ListLedgerEvents@engagement          UK   4.4   444   ...4   ..4X.   .4S   4
LedgerService.FollowLedgerEvents@order             UK   4..   444   ...4   ..4X.   44S   4
LedgerService.FollowLedgerEvents@root              UK   4.4   ..4   ...4   ..4X.   44S   4
LedgerService.FollowLedgerEvents@engagement        UK   4.4   444   ...4   ..4X.   .4S   4
LedgerService.CloseLedger@order                    UK   4..   444   3334   334X3   UUU   4
LedgerService.CloseLedger@root                     UK   4.4   334   3334   334X3   UUU   4
LedgerService.CloseLedger@engagement               UK   4.4   444   3334   334X3   UUU   4
MasterService.CreateMaster@order                   UK   4..   444   3..4   334X3   44S   4
MasterService.CreateMaster@root                    UK   4.4   3.4   3..4   334X3   44S   4
MasterService.CreateMaster@engagement              UK   4.4   444   3..4   334X3   .4S   4
MasterService.ListMasters@order                    UK   4..   444   ...4   ..4X.   44S   4
MasterService.ListMasters@root                     UK   4.4   ..4   ...4   ..4X.   44S   4
MasterService.ListMasters@engagement               UK   4.4   444   ...4   ..4X.   .4S   4
MasterService.GetMaster@order                      UK   4..   444   ...4   ..4X4   44S   4
MasterService.GetMaster@root                       UK   4.4   ..4   ...4   ..4X4   44S   4
MasterService.GetMaster@engagement                 UK   4.4   444   ...4   ..4X4   .4S   4
MasterService.AppendEvent@order                    UK   4..   444   3..4   3.4X4   44S   4
MasterService.AppendEvent@root                     UK   4.4   3.4   3..4   3.4X4   44S   4
MasterService.AppendEvent@engagement               UK   4.4   444   3..4   3.4X4   .4S   4
MasterService.AppendEvents@order                   UK   4..   444   3..4   3.4X4   44S   4
MasterService.AppendEvents@root                    UK   4.4   3.4   3..4   3.4X4   44S   4
MasterService.AppendEvents@engagement              UK   4.4   444   3..4   3.4X4   .4S   4
MasterService.ListMasterEvents@order               UK   4..   444   ...4   ..4X4   44S   4
MasterService.ListMasterEvents@root                UK   4.4   ..4   ...4   ..4X4   44S   4
MasterService.ListMasterEvents@engagement          UK   4.4   444   ...4   ..4X4   .4S   4
MasterService.FollowMasterEvents@order             UK   4..   444   ...4   ..4X4   44S   4
MasterService.FollowMasterEvents@root              UK   4.4   ..4   ...4   ..4X4   44S   4
MasterService.FollowMasterEvents@engagement        UK   4.4   444   ...4   ..4X4   .4S   4
MasterService.CloseMaster@order                    UK   4..   444   3334   334X4   44S   4
MasterService.CloseMaster@root                     UK   4.4   334   3334   334X4   44S   4
MasterService.CloseMaster@engagement               UK   4.4   444   3334   334X4   .4S   4
MasterService.GrantMasterAccess@order              UK   4..   444   33.4   334X4   44S   4
MasterService.GrantMasterAccess@root               UK   4.4   334   33.4   334X4   44S   4
MasterService.GrantMasterAccess@engagement         UK   4.4   444   33.4   334X4   .4S   4
MasterService.ListMasterAccess@order               UK   4..   444   ...4   ..4X4   44S   4
MasterService.ListMasterAccess@root                UK   4.4   ..4   ...4   ..4X4   44S   4
MasterService.ListMasterAccess@engagement          UK   4.4   444   ...4   ..4X4   .4S   4
MasterService.RevokeMasterAccess@order             UK   4..   444   33.4   334X4   44S   4
MasterService.RevokeMasterAccess@root              UK   4.4   334   33.4   334X4   44S   4
MasterService.RevokeMasterAccess@engagement        UK   4.4   444   33.4   334X4   .4S   4
ProofService.GetLedgerCheckpoint@order             UK   4..   444   ...4   334X3   44S   4
ProofService.GetLedgerCheckpoint@root              UK   4.4   ..4   ...4   334X3   44S   4
ProofService.GetLedgerCheckpoint@engagement        UK   4.4   444   ...4   334X3   .4S   4
ProofService.GetLedgerInclusion(ledger)@order      UK   4..   444   ...4   ..4X.   44S   4
ProofService.GetLedgerInclusion(ledger)@root       UK   4.4   ..4   ...4   ..4X.   44S   4
ProofService.GetLedgerInclusion(ledger)@engagement UK   4.4   444   ...4   ..4X.   .4S   4
ProofService.GetLedgerInclusion(master)@order      UK   4..   444   ...4   ..4X4   44S   4
ProofService.GetLedgerInclusion(master)@root       UK   4.4   ..4   ...4   ..4X4   44S   4
ProofService.GetLedgerInclusion(master)@engagement UK   4.4   444   ...4   ..4X4   .4S   4
ProofService.GetLedgerConsistency@order            UK   4..   444   ...4   334X3   44S   4
ProofService.GetLedgerConsistency@root             UK   4.4   ..4   ...4   334X3   44S   4
ProofService.GetLedgerConsistency@engagement       UK   4.4   444   ...4   334X3   .4S   4
ProofService.GetMasterCheckpoint@order             UK   4..   444   ...4   ..4X4   44S   4
ProofService.GetMasterCheckpoint@root              UK   4.4   ..4   ...4   ..4X4   44S   4
ProofService.GetMasterCheckpoint@engagement        UK   4.4   444   ...4   ..4X4   .4S   4
ProofService.GetMasterInclusion@order              UK   4..   444   ...4   ..4X4   44S   4
ProofService.GetMasterInclusion@root               UK   4.4   ..4   ...4   ..4X4   44S   4
ProofService.GetMasterInclusion@engagement         UK   4.4   444   ...4   ..4X4   .4S   4
ProofService.GetMasterConsistency@order            UK   4..   444   ...4   ..4X4   44S   4
ProofService.GetMasterConsistency@root             UK   4.4   ..4   ...4   ..4X4   44S   4
ProofService.GetMasterConsistency@engagement       UK   4.4   444   ...4   ..4X4   .4S   4
DelegationService.GrantOrganizationDelegation      UK   4.4   334   4444   44444   UUU   4
DelegationService.RevokeOrganizationDelegation     UK   4.4   334   4444   44444   UUU   4
DelegationService.ListOrganizationDelegations      UK   4.4   ..4   4444   44444   UUU   4
DelegationService.GrantLedgerDelegation@order      UK   4..   444   33.4   334X3   UUU   4
DelegationService.GrantLedgerDelegation@root       UK   4.4   334   33.4   334X3   UUU   4
DelegationService.GrantLedgerDelegation@engagement UK   4.4   444   33.4   334X3   UUU   4
DelegationService.RevokeLedgerDelegation@order     UK   4..   444   33.4   334X3   UUU   4
DelegationService.RevokeLedgerDelegation@root      UK   4.4   334   33.4   334X3   UUU   4
DelegationService.RevokeLedgerDelegation@engagement UK  4.4   444   33.4   334X3   UUU   4
DelegationService.ListLedgerDelegations@order      UK   4..   444   ...4   334X3   UUU   4
DelegationService.ListLedgerDelegations@root       UK   4.4   ..4   ...4   334X3   UUU   4
DelegationService.ListLedgerDelegations@engagement UK   4.4   444   ...4   334X3   UUU   4
DelegationService.GrantMasterDelegation@order      UK   4..   444   33.4   334X4   UUU   4
DelegationService.GrantMasterDelegation@root       UK   4.4   334   33.4   334X4   UUU   4
DelegationService.GrantMasterDelegation@engagement UK   4.4   444   33.4   334X4   UUU   4
DelegationService.RevokeMasterDelegation@order     UK   4..   444   33.4   334X4   UUU   4
DelegationService.RevokeMasterDelegation@root      UK   4.4   334   33.4   334X4   UUU   4
DelegationService.RevokeMasterDelegation@engagement UK  4.4   444   33.4   334X4   UUU   4
DelegationService.ListMasterDelegations@order      UK   4..   444   ...4   ..4X4   UUU   4
DelegationService.ListMasterDelegations@root       UK   4.4   ..4   ...4   ..4X4   UUU   4
DelegationService.ListMasterDelegations@engagement UK   4.4   444   ...4   ..4X4   UUU   4
DelegationService.GetDelegationSnapshot(organization) UK 4.4  ..4   4444   44444   UUU   4
DelegationService.GetDelegationSnapshot(ledger)@order UK 4..  444   ...4   334X3   UUU   4
DelegationService.GetDelegationSnapshot(ledger)@root UK 4.4   ..4   ...4   334X3   UUU   4
DelegationService.GetDelegationSnapshot(ledger)@engagement UK 4.4 444 ...4 334X3   UUU   4
DelegationService.GetDelegationSnapshot(master)@order UK 4..  444   ...4   ..4X4   UUU   4
DelegationService.GetDelegationSnapshot(master)@root UK 4.4   ..4   ...4   ..4X4   UUU   4
DelegationService.GetDelegationSnapshot(master)@engagement UK 4.4 444 ...4 ..4X4   UUU   4
DelegationService.GetDelegationProof(organization) UK   4.4   ..4   4444   44444   UUU   4
DelegationService.GetDelegationProof(ledger)@order UK   4..   444   ...4   334X3   UUU   4
DelegationService.GetDelegationProof(ledger)@root  UK   4.4   ..4   ...4   334X3   UUU   4
DelegationService.GetDelegationProof(ledger)@engagement UK 4.4 444  ...4   334X3   UUU   4
DelegationService.GetDelegationProof(master)@order UK   4..   444   ...4   ..4X4   UUU   4
DelegationService.GetDelegationProof(master)@root  UK   4.4   ..4   ...4   ..4X4   UUU   4
DelegationService.GetDelegationProof(master)@engagement UK 4.4 444  ...4   ..4X4   UUU   4
AuditService.ListAccessEvents@order                UK   ...   ...   ....   .....   UUU   .
WebhookService.CreateWebhook@order                 UK   4..   444   ...4   ..4X.   UUU   4
WebhookService.CreateWebhook@root                  UK   4.4   ..4   ...4   ..4X.   UUU   4
WebhookService.CreateWebhook@engagement            UK   4.4   444   ...4   ..4X.   UUU   4
WebhookService.ListWebhooks                        UK   ...   ...   ....   .....   UUU   .
WebhookService.DeleteWebhook                       UK   4.4   444   4444   44444   UUU   4
WebhookService.ListWebhookDeliveries               UK   4.4   444   4444   44444   UUU   4
WebhookService.TestWebhook                         UK   4.4   444   4444   44444   UUU   4
WebhookService.RedeliverWebhook                    UK   4.4   444   4444   44444   UUU   4
`;

export type TargetName = 'order' | 'root' | 'engagement';

export interface AccessRow {
  readonly name: string;
  /** `Service.Method` */
  readonly method: string;
  readonly scope: 'organization' | 'ledger' | 'master' | null;
  readonly target: TargetName | null;
  /** `ok` or the code of the refusal. */
  readonly expected: Readonly<Record<CallerName, string>>;
}

const ROW = /^(?<method>\w+\.\w+)(?:\((?<scope>organization|ledger|master)\))?(?:@(?<target>order|root|engagement))?$/;

export const accessRows: readonly AccessRow[] = lines
  .trim()
  .split('\n')
  .map((line) => {
    const [name = '', ...cells] = line.split(/\s+/);
    const parts = ROW.exec(name)?.groups;
    const letters = [...cells.join('')];
    if (parts === undefined || letters.length !== callerNames.length) throw new Error(`No row of the matrix: ${line}`);
    const expected = callerNames.map((caller, at) => {
      const outcome = outcomes[letters[at] ?? ''];
      if (outcome === undefined) throw new Error(`No outcome for ${caller}: ${line}`);
      return [caller, outcome];
    });
    return {
      name,
      method: parts.method ?? '',
      scope: (parts.scope ?? null) as AccessRow['scope'],
      target: (parts.target ?? null) as AccessRow['target'],
      expected: Object.fromEntries(expected) as AccessRow['expected'],
    };
  });
