import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { uuidV5 } from '../../src/domain/values/uuid.ts';
import { Auth } from '../../src/gen/svc/v1/options_pb.ts';
import { authenticatedMethods, historyOf, storedHistory, type Tracked, tracked } from '../support/access-events.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newOrganization, onboarding } from '../support/organizations.ts';
import { newDevice, newOrder, newParty, type Party } from '../support/parties.ts';
import { done, type Fields, shape } from '../support/parties-rest.ts';
import { embeddedTest } from '../support/several-nodes.ts';

/** Every method that touches a ledger leaves its event: carried out, and refused to somebody else. */

const { node, base, order, master } = await nodeWithMaster({ keyed: false });
const { buyer } = order;
const other = await newOrder(base, { keyed: false });
const stranger = await newParty(base, { keyed: false });
const device = await newDevice(base);
const { organizationId, frlLedgerId } = await newOrganization(base, buyer);

interface Step {
  /** `Service.Method` */
  readonly name: string;
  /** `VERB /path` */
  readonly call: () => string;
  readonly body: (() => Fields) | null;
  /** The ledger that a caller who may see it finds beside the call; from the answer where it is made by it. */
  readonly ledger: (answer: Fields) => unknown;
  /** What a stranger finds beside the same call. */
  readonly forStranger: (answer: Fields) => unknown;
}

/** A stranger named the ledger too. */
const named = (name: string, call: () => string, ledger: Step['ledger'], body: Step['body'] = null): Step => ({
  name,
  call,
  body,
  ledger,
  forStranger: ledger,
});
/** A stranger is told that there is no such object, and finds no ledger beside that. */
const hidden = (name: string, call: () => string, ledger: Step['ledger'], body: Step['body'] = null): Step => ({
  ...named(name, call, ledger, body),
  forStranger: nothing,
});
/** A stranger may do the same, with a ledger of its own. */
const opens = (name: string, call: string, idField: string, body: () => Fields): Step => ({
  ...named(
    name,
    () => call,
    (answer) => answer[idField],
    body,
  ),
  forStranger: () => expect.any(String),
});
/** A stranger has no such subscription, and what was not found is neither a ledger, a master nor an organization. */
const ofWebhook = (name: string, call: () => string): Step => ({
  ...named(name, call, theOrder),
  forStranger: () => undefined,
});

const nothing = () => null;
const theOrder = () => order.ledgerId;
const theRoot = () => frlLedgerId;
const made = { webhook: '', delivery: '', link: '', engagement: '' };
const ofMaster = (verb: string, rest = '') => `${verb} /v1/traceledger/master/${master.uuid}${rest}`;
const ofLedger = (verb: string, rest = '') => `${verb} /v1/ledgers/${order.ledgerId}${rest}`;
/** The query of a stream that ends before its first event. */
const endsAtOnce = (after: string) => `${after}=-1&to=2020-01-01T00:00:00Z`;
const delegate = () => ({ delegate_actor_id: other.supplier.actorId });
const inOrganization = () => ({ organization_id: organizationId, ...delegate() });
const inLedger = () => ({ ledger_id: order.ledgerId, ...delegate() });
const inMaster = () => ({ master_id: master.uuid, ...delegate() });
const organizationQuery = () => `organization_id=${organizationId}`;
const hook = (rest = '') => `/v1/webhooks/${made.webhook}${rest}`;

const steps: readonly Step[] = [
  opens(
    'OrganizationService.OnboardOrganization',
    'POST /v1/onboarding/organization',
    'frl_ledger_id',
    () => onboarding,
  ),
  hidden('OrganizationService.GetOrganization', () => `GET /v1/organizations/${organizationId}`, theRoot),
  hidden(
    'OrganizationService.EnrichOrganization',
    () => `PATCH /v1/organizations/${organizationId}/enrich`,
    theRoot,
    () => ({ city: 'Ulm' }),
  ),
  opens('LedgerService.CreateLedger', 'POST /v1/ledgers', 'id', () => ({ supplier_svc_id: other.supplier.svcId })),
  named('LedgerService.GetLedger', () => ofLedger('GET'), theOrder),
  named('LedgerService.ListLedgerEvents', () => ofLedger('GET', '/events'), theOrder),
  named(
    'LedgerService.FollowLedgerEvents',
    () => ofLedger('GET', `/events/follow?${endsAtOnce('after_seq')}`),
    theOrder,
  ),
  opens('EngagementService.CreateEngagement', 'POST /v1/engagements', 'ledger_id', () => ({
    counterparty_actor_id: other.buyer.actorId,
    purpose: 'AUDIT',
  })),
  named(
    'EngagementService.GetEngagement',
    () => `GET /v1/engagements/${made.engagement}`,
    () => made.engagement,
  ),
  named(
    'EngagementService.CloseEngagement',
    () => `PATCH /v1/engagements/${made.engagement}/close`,
    () => made.engagement,
  ),
  named(
    'MasterService.CreateMaster',
    () => 'POST /v1/traceledger/master',
    theOrder,
    () => ({ ledger_id: order.ledgerId, business_ref: 'R', scope: 'ORDER' }),
  ),
  named('MasterService.ListMasters', () => `GET /v1/traceledger/master?ledger_id=${order.ledgerId}`, theOrder),
  hidden('MasterService.GetMaster', () => ofMaster('GET'), theOrder),
  hidden(
    'MasterService.AppendEvent',
    () => ofMaster('POST', '/events'),
    theOrder,
    () => ({ event_type: 'SHIPPED', payload: { a: 1 } }),
  ),
  hidden(
    'MasterService.FollowMasterEvents',
    () => ofMaster('GET', `/events/follow?${endsAtOnce('after_master_seq')}`),
    theOrder,
  ),
  hidden('MasterService.ListMasterEvents', () => ofMaster('GET', '/events'), theOrder),
  named('ProofService.GetLedgerCheckpoint', () => ofLedger('GET', '/checkpoint'), theOrder),
  named('ProofService.GetLedgerInclusion', () => ofLedger('GET', '/proof/inclusion?seq=0'), theOrder),
  named('ProofService.GetLedgerConsistency', () => ofLedger('GET', '/proof/consistency?from=1'), theOrder),
  hidden('ProofService.GetMasterCheckpoint', () => ofMaster('GET', '/checkpoint'), theOrder),
  hidden('ProofService.GetMasterInclusion', () => ofMaster('GET', '/proof/inclusion?master_seq=0'), theOrder),
  hidden('ProofService.GetMasterConsistency', () => ofMaster('GET', '/proof/consistency?from=1'), theOrder),
  hidden(
    'DelegationService.GrantOrganizationDelegation',
    () => 'POST /v1/delegation/organization',
    theRoot,
    () => ({ ...inOrganization(), role: 'AUDITOR', permissions: {} }),
  ),
  hidden(
    'DelegationService.ListOrganizationDelegations',
    () => `GET /v1/delegation/organization?${organizationQuery()}`,
    theRoot,
  ),
  hidden(
    'DelegationService.RevokeOrganizationDelegation',
    () => 'PATCH /v1/delegation/organization',
    theRoot,
    inOrganization,
  ),
  named(
    'DelegationService.GrantLedgerDelegation',
    () => 'POST /v1/delegation/ledger',
    theOrder,
    () => ({ ...inLedger(), role: 'AUDITOR' }),
  ),
  named(
    'DelegationService.ListLedgerDelegations',
    () => `GET /v1/delegation/ledger?ledger_id=${order.ledgerId}`,
    theOrder,
  ),
  named('DelegationService.RevokeLedgerDelegation', () => 'PATCH /v1/delegation/ledger', theOrder, inLedger),
  hidden(
    'DelegationService.GrantMasterDelegation',
    () => 'POST /v1/delegation/master',
    theOrder,
    () => ({ ...inMaster(), role: 'AUDITOR', permissions: {} }),
  ),
  hidden(
    'DelegationService.ListMasterDelegations',
    () => `GET /v1/delegation/master?master_id=${master.uuid}`,
    theOrder,
  ),
  hidden('DelegationService.RevokeMasterDelegation', () => 'PATCH /v1/delegation/master', theOrder, inMaster),
  hidden(
    'DelegationService.GetDelegationSnapshot',
    () => `GET /v1/delegation/snapshot?master_id=${master.uuid}`,
    theOrder,
  ),
  hidden('DelegationService.GetDelegationProof', () => `GET /v1/delegation/proof?${organizationQuery()}`, theRoot),
  hidden(
    'MasterService.GrantMasterAccess',
    () => ofMaster('POST', '/access'),
    theOrder,
    () => ({ actor_id: other.supplier.actorId, access: 'read' }),
  ),
  hidden('MasterService.ListMasterAccess', () => ofMaster('GET', '/access'), theOrder),
  hidden('MasterService.RevokeMasterAccess', () => ofMaster('DELETE', `/access/${made.link}`), theOrder),
  named(
    'WebhookService.CreateWebhook',
    () => 'POST /v1/webhooks',
    theOrder,
    () => ({
      url: 'http://127.0.0.1:1/hook',
      ledger_id: order.ledgerId,
    }),
  ),
  ofWebhook('WebhookService.TestWebhook', () => `POST ${hook('/test')}`),
  ofWebhook('WebhookService.ListWebhookDeliveries', () => `GET ${hook('/deliveries')}`),
  ofWebhook('WebhookService.RedeliverWebhook', () => `POST ${hook(`/deliveries/${made.delivery}/redeliver`)}`),
  ofWebhook('WebhookService.DeleteWebhook', () => `DELETE ${hook()}`),
  named('AuditService.ListAccessEvents', () => `GET /v1/audit/access?ledger_id=${order.ledgerId}`, theOrder),
  hidden('MasterService.CloseMaster', () => ofMaster('PATCH', '/close'), theOrder),
  named('LedgerService.CloseLedger', () => ofLedger('PATCH', '/close'), theOrder),
];

/** What an entity does by its header; it has no API key to read its history with. */
const entityCalls = [
  ['EntityService.CreateRootLedger', 'POST', () => '/v1/entities/root-ledger'],
  ['EntityService.GetRootLedger', 'GET', () => `/v1/entities/root-ledger/${device.actorId}`],
  ['EntityService.CloseRootLedger', 'PATCH', () => `/v1/entities/root-ledger/${device.actorId}/close`],
] as const;

/** Names no ledger, and neither a master nor an organization. */
const silent = [
  'ActorService.EnrollActorKey',
  'ActorService.ListNetworkActors',
  'ActorService.PreferActorKey',
  'ActorService.RevokeActorKey',
  'DeveloperService.CreateApiKey',
  'DeveloperService.GetDeveloper',
  'DeveloperService.RevokeApiKey',
  'EntityService.SetArlGate',
  'LedgerService.ListLedgers',
  'OrganizationService.ListOrganizations',
  'WebhookService.ListWebhooks',
];

test('this test covers every authenticated method of the API', () => {
  const known = [...steps.map(({ name }) => name), ...entityCalls.map(([name]) => name)];
  expect([...known, ...silent].sort()).toEqual(authenticatedMethods(Auth.NONE));
});

test('each call that touches a ledger, each replay and each refused call of a stranger is recorded once', async () => {
  const expected: {
    readonly name: string;
    readonly party: Party;
    readonly requestId: string;
    readonly event: unknown;
  }[] = [];
  const expectEvent = (party: Party, step: Step, { answer, requestId }: Tracked, ledgerId: unknown) => {
    const [method, path = ''] = step.call().split(' ');
    const event = {
      id: shape.uuid,
      method,
      path: path.replace(/\?.*/, ''),
      response_status: answer.status,
      ledger_id: ledgerId,
      at: shape.time,
      api_key_id: party.keyId,
      request_id: requestId,
    };
    expected.push({ name: step.name, party, requestId, event: ledgerId === undefined ? undefined : event });
  };
  for (const step of steps) {
    const [method = '', path = ''] = step.call().split(' ');
    const body = step.body === null ? {} : { body: step.body() };
    const refused = await tracked(base, method, path, { headers: stranger.bearer, ...body });
    if (step.forStranger === nothing) expect(refused.answer.status, step.name).toBe(404);
    const headers = { ...buyer.bearer, ...(method === 'GET' ? {} : { 'idempotency-key': step.name }) };
    const carriedOut = await tracked(base, method, path, { headers, ...body });
    const { answer } = carriedOut;
    expect(answer.status, `${step.name} ${answer.raw}`).toBeLessThan(300);
    expectEvent(stranger, step, refused, step.forStranger(answer.body));
    expectEvent(buyer, step, carriedOut, step.ledger(answer.body));
    if (method !== 'GET') {
      const replay = await tracked(base, method, path, { headers, ...body });
      expect(replay.answer.headers.get('idempotent-replayed'), step.name).toBe('true');
      expectEvent(buyer, step, replay, step.ledger(answer.body));
    }
    note(step.name, answer.body);
  }
  const histories = new Map([
    [buyer, await historyOf(base, buyer)],
    [stranger, await historyOf(base, stranger)],
  ]);
  for (const { name, party, requestId, event } of expected) {
    const found = histories.get(party)?.filter((one) => one.request_id === requestId);
    expect(found, name).toEqual(event === undefined ? [] : [event]);
  }
});

test('a call that names no ledger leaves no record', async () => {
  const party = await newParty(base, { keyed: false });
  for (const path of ['/v1/developer/me', '/v1/ledgers', '/v1/organizations', '/v1/network/actors', '/v1/webhooks'])
    await done(base, 'GET', path, party);
  await done(base, 'POST', '/v1/developer/keys', party, { name: 'b' });
  expect(await historyOf(base, party)).toEqual([]);
});

embeddedTest('the calls of an entity about its root ledger are recorded, also while there is none', async () => {
  const rootId = uuidV5(device.actorId, 'entity-root');
  const unknown = await tracked(base, 'GET', `/v1/entities/root-ledger/${device.actorId}`, { headers: device.headers });
  expect(unknown.answer.status).toBe(404);
  for (const [, verb, path] of entityCalls) {
    const { answer } = await tracked(base, verb, path(), { headers: device.headers });
    expect(answer.status).toBe(200);
  }
  const foreign = await newDevice(base);
  await tracked(base, 'GET', `/v1/entities/root-ledger/${device.actorId}`, { headers: foreign.headers });
  await tracked(base, 'GET', `/v1/traceledger/master/${randomUUID()}`, { headers: foreign.headers });
  await node.stop();
  const shown = (events: Awaited<ReturnType<typeof storedHistory>>) =>
    events.map((one) => [one.method, one.responseStatus, one.ledgerId, one.apiKeyId]);
  expect(shown(await storedHistory(node.dataDir, device.actorId))).toEqual([
    ['GET', 404, rootId, null],
    ['POST', 200, rootId, null],
    ['GET', 200, rootId, null],
    ['PATCH', 200, rootId, null],
  ]);
  expect(shown(await storedHistory(node.dataDir, foreign.actorId))).toEqual([
    ['GET', 404, rootId, null],
    ['GET', 404, null, null],
  ]);
});

function note(name: string, answer: Fields): void {
  if (name === 'EngagementService.CreateEngagement') made.engagement = String(answer.ledger_id);
  if (name === 'MasterService.GrantMasterAccess') made.link = String(answer.link_id);
  if (name === 'WebhookService.CreateWebhook') made.webhook = String(answer.id);
  if (name === 'WebhookService.TestWebhook')
    made.delivery = String(answer.id ?? (answer.delivery as Fields | undefined)?.id);
}
