import type { DescService } from '@bufbuild/protobuf';
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

/** The public API. The client, transports, documentation and tests take its methods from here. */
export const services = [
  HealthService,
  SandboxService,
  DeveloperService,
  ActorService,
  ResolverService,
  OrganizationService,
  EntityService,
  EngagementService,
  LedgerService,
  MasterService,
  ProofService,
  DelegationService,
  AuditService,
  WebhookService,
] as const satisfies readonly DescService[];
