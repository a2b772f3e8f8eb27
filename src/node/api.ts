import type { Directory } from '../actors/routing/directory.ts';
import { ActorService } from '../gen/svc/v1/actors_pb.ts';
import { AuditService } from '../gen/svc/v1/audit_pb.ts';
import { DelegationService } from '../gen/svc/v1/delegation_pb.ts';
import { DeveloperService } from '../gen/svc/v1/developer_pb.ts';
import { EngagementService } from '../gen/svc/v1/engagements_pb.ts';
import { EntityService } from '../gen/svc/v1/entities_pb.ts';
import { HealthService } from '../gen/svc/v1/health_pb.ts';
import { LedgerService } from '../gen/svc/v1/ledgers_pb.ts';
import { MasterService } from '../gen/svc/v1/masters_pb.ts';
import { OrganizationService } from '../gen/svc/v1/organizations_pb.ts';
import { ProofService } from '../gen/svc/v1/proofs_pb.ts';
import { ResolverService } from '../gen/svc/v1/resolver_pb.ts';
import { SandboxService } from '../gen/svc/v1/sandbox_pb.ts';
import { WebhookService } from '../gen/svc/v1/webhooks_pb.ts';
import { type Implementation, implement } from '../rpc/endpoints/handlers.ts';
import type { Clock } from '../runtime/clock/clock.ts';
import type { MemoryBudget } from '../runtime/limits/memory-budget.ts';
import { type SandboxRun, sandboxService } from '../sandbox/sandbox-service.ts';
import { actorService } from '../service/actors/actors.ts';
import type { Identities } from '../service/actors/identities.ts';
import type { KeyEndings } from '../service/actors/key-endings.ts';
import { keyRevocation } from '../service/actors/key-revocation.ts';
import { resolverService } from '../service/actors/resolver.ts';
import type { AccessQueue } from '../service/audit/access-history.ts';
import { auditService } from '../service/audit/audit.ts';
import { LedgerNaming } from '../service/audit/ledger-naming.ts';
import { entityNames, namesByFields, organizationNames, webhookNames } from '../service/audit/named-ledgers.ts';
import type { Authority } from '../service/authority/authority.ts';
import { healthService, type StoreCheck } from '../service/calls/health.ts';
import { delegationService } from '../service/delegation/delegation-methods.ts';
import { Delegations } from '../service/delegation/delegations.ts';
import { masterAccess } from '../service/delegation/master-access.ts';
import { developerService } from '../service/developers/developers.ts';
import type { KeyCache } from '../service/developers/entity-credentials.ts';
import { entityService } from '../service/entities/entities.ts';
import { followLedgerEvents, followMasterEvents } from '../service/following/follow-methods.ts';
import type { Followers } from '../service/following/followers.ts';
import { OnceSubmitter } from '../service/idempotency/submit-once.ts';
import { engagementService } from '../service/ledgers/engagements.ts';
import { ledgerService } from '../service/ledgers/ledgers.ts';
import type { LogIdentity } from '../service/log-identity/log-identity.ts';
import { EventAppender } from '../service/masters/append-event.ts';
import { appendStream } from '../service/masters/append-stream.ts';
import { masterService } from '../service/masters/masters.ts';
import { StreamsMemory } from '../service/masters/stream-memory.ts';
import { organizationService } from '../service/organizations/organizations.ts';
import { proofService } from '../service/proofs/proofs.ts';
import type { ProvenLogs } from '../service/proofs/proven-logs.ts';
import type { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { SealCheck } from '../service/reading/seal-check.ts';
import type { SecretBox } from '../service/records/secret-box.ts';
import type { TargetPolicy } from '../service/webhooks/webhook-target.ts';
import type { WebhookWork } from '../service/webhooks/webhook-work.ts';
import { webhookService } from '../service/webhooks/webhooks.ts';
import { ledgerClosing } from '../service/writing/ledger-closing.ts';
import { ledgerOpening } from '../service/writing/ledger-opening.ts';
import type { AccessLog } from '../store/access-log.ts';
import type { KeyedMutex } from '../store/keyed-mutex.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';

export interface ApiParts {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly changes: KeyedMutex;
  readonly reading: LedgerReading;
  readonly seals: SealCheck;
  readonly access: { readonly log: AccessLog; readonly queue: AccessQueue };
  readonly identities: Identities;
  readonly endings: KeyEndings;
  readonly directory: Directory;
  readonly authority: Authority;
  readonly logIdentity: LogIdentity;
  readonly apiKeys: KeyCache;
  readonly clock: Clock;
  readonly storeChecks: readonly StoreCheck[];
  readonly production: boolean;
  readonly sandboxRun: SandboxRun;
  readonly sandboxRunsWaiting: number;
  readonly webhooks: { readonly secrets: SecretBox; readonly targets: TargetPolicy; readonly work: WebhookWork };
  /** How far ahead of now a key's revocation is dated, ms. 0 on a single node. */
  readonly revocationLeadMs: number;
  readonly memory: MemoryBudget;
  readonly provenLogs: ProvenLogs;
  readonly followers: Followers;
}

export function apiOf(parts: ApiParts): Implementation[] {
  const { ledgers, records, reading, seals, access, identities, directory, authority, logIdentity } = parts;
  const { clock, webhooks, changes } = parts;
  const now = () => clock.now();
  const named = new LedgerNaming(reading, records);
  const commands = new OnceSubmitter(directory, ledgers);
  const opening = ledgerOpening(directory, reading);
  const close = ledgerClosing(identities, commands);
  const appender = new EventAppender(identities, reading, commands);
  const delegations = new Delegations(records, identities, reading, commands);
  const api = [
    implement(HealthService, healthService(parts.storeChecks, logIdentity.behind)),
    implement(DeveloperService, developerService(records, identities, parts.apiKeys, changes)),
    implement(
      ActorService,
      actorService(identities, keyRevocation(identities, parts.endings, clock, parts.revocationLeadMs)),
    ),
    implement(ResolverService, resolverService(identities, authority, logIdentity, parts.production)),
    implement(OrganizationService, organizationService(records, opening, reading, changes), organizationNames(named)),
    implement(EntityService, entityService(records, identities, opening, reading, close, changes), entityNames()),
    implement(EngagementService, engagementService(records, identities, opening, reading, close)),
    implement(LedgerService, {
      ...ledgerService(ledgers, records, identities, reading, opening, close, seals),
      followLedgerEvents: followLedgerEvents(parts.followers),
    }),
    implement(MasterService, {
      ...masterService(ledgers, identities, reading, appender, seals, commands),
      ...masterAccess(ledgers, delegations, reading, now),
      followMasterEvents: followMasterEvents(parts.followers),
      appendEvents: appendStream(appender, named, new StreamsMemory(parts.memory), now),
    }),
    implement(ProofService, proofService(ledgers, reading, parts.provenLogs)),
    implement(SandboxService, sandboxService(parts.sandboxRun, parts.sandboxRunsWaiting)),
    implement(DelegationService, delegationService(ledgers, delegations, seals, now)),
    implement(
      AuditService,
      auditService(access.log, () => access.queue.flush(), now),
    ),
    implement(
      WebhookService,
      webhookService(records, ledgers, reading, webhooks.secrets, webhooks.targets, webhooks.work, changes),
      webhookNames(named),
    ),
  ];
  return api.map((joined) => ({ ...joined, names: { ...namesByFields(named, joined.service), ...joined.names } }));
}
