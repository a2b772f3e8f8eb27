import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { ActorService } from '../../gen/svc/v1/actors_pb.ts';
import { AuditService } from '../../gen/svc/v1/audit_pb.ts';
import { DelegationService } from '../../gen/svc/v1/delegation_pb.ts';
import { DeveloperService } from '../../gen/svc/v1/developer_pb.ts';
import { EngagementService } from '../../gen/svc/v1/engagements_pb.ts';
import { EntityService } from '../../gen/svc/v1/entities_pb.ts';
import { HealthService } from '../../gen/svc/v1/health_pb.ts';
import { LedgerService } from '../../gen/svc/v1/ledgers_pb.ts';
import { MasterService } from '../../gen/svc/v1/masters_pb.ts';
import { OrganizationService } from '../../gen/svc/v1/organizations_pb.ts';
import { ProofService } from '../../gen/svc/v1/proofs_pb.ts';
import { ResolverService } from '../../gen/svc/v1/resolver_pb.ts';
import { SandboxService } from '../../gen/svc/v1/sandbox_pb.ts';
import { WebhookService } from '../../gen/svc/v1/webhooks_pb.ts';

interface Group {
  readonly name: string;
  readonly description: string;
  readonly methods: readonly DescMethod[];
}

const { grantMasterAccess, listMasterAccess, revokeMasterAccess, ...masters } = MasterService.method;
const { appendEvent, appendEvents, listMasterEvents, followMasterEvents, ...mastersAlone } = masters;
const { listLedgerEvents, followLedgerEvents, ...ledgersAlone } = LedgerService.method;

/** Its own: under the tag of a service, generators would make it a method of that service's client. */
export const receiverGroup = 'Webhook receiver';

/** The tags of the OpenAPI document, in the order in which a newcomer needs them. */
export const groups: readonly Group[] = [
  group('Register', 'Make a developer account with an actor in the sandbox and one in production, and its API keys.', [
    DeveloperService,
  ]),
  group('Organizations', 'Onboard a company. Each gets a facility root ledger.', [OrganizationService]),
  group('Ledgers', 'Open a ledger between two parties, read it and close it.', Object.values(ledgersAlone)),
  group('Masters', 'Open a traceledger master, one shipment or process within a ledger.', Object.values(mastersAlone)),
  group('Events', 'Append business events to a master, and read or follow the events of a master or a ledger.', [
    ...[appendEvent, appendEvents, listMasterEvents, listLedgerEvents, followLedgerEvents, followMasterEvents],
  ]),
  group('Proofs', 'Get signed checkpoints of ledgers and masters, and proofs that events are in them.', [ProofService]),
  group('Grants', 'Let other actors read or write an organization, a ledger or a master, and end it again.', [
    ...[grantMasterAccess, listMasterAccess, revokeMasterAccess],
    DelegationService,
  ]),
  group('Actors and keys', 'Make actors, and enrol and revoke the keys that they sign with.', [ActorService]),
  group('Entities', 'Onboard machines, shipments and other things. Each may have an asset root ledger.', [
    EntityService,
  ]),
  group('Engagements', 'Open a ledger for a purpose other than an order between a buyer and a supplier.', [
    EngagementService,
  ]),
  group('Webhooks', 'Have events sent to a URL as they are written.', [WebhookService]),
  group(receiverGroup, 'What a receiver of webhooks serves.', []),
  group('Resolver', 'Look up the public keys of actors and of the service, without a credential.', [ResolverService]),
  group('Access history', 'Read which calls your actor has made.', [AuditService]),
  group('Sandbox', 'Watch a whole run between five parties.', [SandboxService]),
  group('Health', 'Ask whether the node can serve, and read the terms of service.', [HealthService]),
];

function group(name: string, description: string, of: readonly (DescService | DescMethod)[]): Group {
  return { name, description, methods: of.flatMap((each) => (each.kind === 'service' ? each.methods : [each])) };
}

const namesByMethod = new Map(groups.flatMap(({ name, methods }) => methods.map((method) => [method, name] as const)));

/** Returns the name of the method's group. Throws for a method without one, which is missing in the list above. */
export function groupOf(method: DescMethod): string {
  const name = namesByMethod.get(method);
  if (name === undefined) throw new Error(`${method.name} is in no group of the documentation`);
  return name;
}
