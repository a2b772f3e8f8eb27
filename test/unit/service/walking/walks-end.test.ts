import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { type ApiParts, apiOf } from '../../../../src/node/api.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { FairPlaces } from '../../../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { BehindLogs } from '../../../../src/service/log-identity/behind-logs.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { Walk } from '../../../../src/service/walking/walk.ts';
import { buyer, ledgerId, masterId, stranger } from '../../../support/commands.ts';
import {
  absentId,
  endlessAccesses,
  endlessLedgers,
  endlessRecords,
  engagementId,
  type OnAsk,
} from '../../../support/endless-stores.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { provenLogsOver } from '../../../support/proofs-rig.ts';
import { startMs } from '../../../support/world.ts';

type Handler = (request: unknown, call: Call) => Promise<unknown>;

const events = { eventType: 'NOPE' };
const world = { actorId: buyer };
/** Somebody who holds no grant of the ledger, and may have held one of each of its masters. */
const delegate = { actorId: stranger };

/** The methods that read lists, and what they are asked for so that they look for ever, or as far as they may. */
const walks: Readonly<Record<string, { readonly request: object; readonly caller?: { readonly actorId: string } }>> = {
  'DeveloperService.getDeveloper': { request: {} },
  'DeveloperService.createApiKey': { request: { name: 'another' } },
  'ActorService.listNetworkActors': { request: { limit: 1_000, offset: 100_000 } },
  'OrganizationService.listOrganizations': { request: { limit: 1_000 } },
  'EntityService.listEntities': { request: { displayName: 'a name', entityType: 'OTHER' } },
  'EntityService.getRootLedger': { request: { actorId: buyer }, caller: delegate },
  'EntityService.closeRootLedger': { request: { actorId: buyer }, caller: delegate },
  'EngagementService.getEngagement': { request: { ledgerId: engagementId }, caller: delegate },
  'EngagementService.closeEngagement': { request: { ledgerId: engagementId }, caller: delegate },
  'LedgerService.listLedgers': { request: { status: 'CLOSED' } },
  'LedgerService.getLedger': { request: { ledgerId }, caller: delegate },
  'LedgerService.listLedgerEvents': { request: { ledgerId, ...events } },
  'LedgerService.closeLedger': { request: { ledgerId }, caller: delegate },
  'MasterService.createMaster': { request: { ledgerId, businessRef: 'PO-1', scope: 'S' }, caller: delegate },
  'MasterService.listMasters': { request: { ledgerId, limit: 1_000 } },
  'MasterService.listMasterEvents': { request: { uuid: masterId, ...events } },
  'MasterService.listMasterAccess': { request: { uuid: masterId } },
  'DelegationService.grantLedgerDelegation': {
    request: { ledgerId, delegateActorId: buyer, role: 'OPS' },
    caller: delegate,
  },
  'DelegationService.revokeLedgerDelegation': { request: { ledgerId, delegateActorId: buyer }, caller: delegate },
  'DelegationService.listOrganizationDelegations': { request: { organizationId: ledgerId } },
  'DelegationService.listLedgerDelegations': { request: { ledgerId } },
  'DelegationService.listMasterDelegations': { request: { masterId } },
  'DelegationService.getDelegationSnapshot': { request: { ledgerId } },
  'DelegationService.getDelegationProof': { request: { ledgerId, ...events } },
  'AuditService.listAccessEvents': { request: {} },
  'ProofService.getLedgerCheckpoint': { request: { ledgerId } },
  'ProofService.getLedgerInclusion': { request: { ledgerId, seq: 5n } },
  'ProofService.getLedgerConsistency': { request: { ledgerId, from: 5n } },
  'ProofService.getMasterCheckpoint': { request: { uuid: masterId } },
  'ProofService.getMasterInclusion': { request: { uuid: masterId, masterSeq: 5n } },
  'ProofService.getMasterConsistency': { request: { uuid: masterId, from: 5n } },
  'WebhookService.createWebhook': {
    request: { url: 'https://hooks.example/', eventTypes: [], ledgerId },
    caller: delegate,
  },
  'WebhookService.listWebhooks': { request: { limit: 1_000 } },
  'WebhookService.listWebhookDeliveries': { request: { id: ledgerId, offset: 100_000 } },
  'WebhookService.redeliverWebhook': { request: { id: ledgerId, deliveryId: absentId } },
};

/** These ask a store for single things, or for a bounded number of them. */
const others = Object.entries({
  HealthService: ['getHealth', 'getTerms'],
  SandboxService: ['runSandbox'],
  DeveloperService: ['registerDeveloper', 'revokeApiKey'],
  ActorService: [
    'createActor',
    'getActor',
    'lookupActor',
    'listActorKeys',
    'enrollActorKey',
    'preferActorKey',
    'revokeActorKey',
  ],
  ResolverService: ['resolveActor', 'getAuthority'],
  OrganizationService: ['onboardOrganization', 'getOrganization', 'enrichOrganization'],
  EntityService: ['onboardEntity', 'getEntity', 'createRootLedger', 'setArlGate'],
  EngagementService: ['createEngagement'],
  // Streams that last have a walk for each part.
  LedgerService: ['createLedger', 'followLedgerEvents'],
  MasterService: [
    'followMasterEvents',
    'getMaster',
    'appendEvent',
    'appendEvents',
    'closeMaster',
    'grantMasterAccess',
    'revokeMasterAccess',
  ],
  DelegationService: [
    'grantOrganizationDelegation',
    'revokeOrganizationDelegation',
    'grantMasterDelegation',
    'revokeMasterDelegation',
  ],
  WebhookService: ['deleteWebhook', 'testWebhook'],
}).flatMap(([service, methods]) => methods.map((method) => `${service}.${method}`));

/** The whole API over stores without end. */
function endlessApi(onAsk: OnAsk): ReadonlyMap<string, Handler> {
  const records = endlessRecords(onAsk);
  const ledgers = endlessLedgers(onAsk);
  const parts = {
    memory: new MemoryBudget(1024 * 1024 * 1024),
    ledgers,
    records,
    reading: new LedgerReading(ledgers, () => startMs),
    seals: async () => [],
    provenLogs: provenLogsOver(ledgers),
    access: { log: endlessAccesses(onAsk), queue: { flush: async () => {} } },
    identities: identitiesIn(records, () => startMs),
    clock: { now: () => startMs },
    webhooks: { targets: { production: false, ownPorts: () => new Set(), ownAddresses: () => [] }, work: {} },
    storeChecks: [],
    logIdentity: { behind: new BehindLogs(false) },
  } as unknown as ApiParts;
  return new Map(
    apiOf(parts).flatMap(({ service, handlers }) =>
      Object.entries(handlers).map(([name, handler]): [string, Handler] => [
        `${service.name}.${name}`,
        handler as Handler,
      ]),
    ),
  );
}

/** Calls a method whose caller hangs up while the n-th page is read; what happened then. */
async function hungUpAt(method: string, nth: number) {
  const { request, caller = world } = walks[method] ?? { request: {} };
  const hangUp = new AbortController();
  let pages = 0;
  let asksAfter = 0;
  const handlers = endlessApi((kind) => {
    if (hangUp.signal.aborted) asksAfter += 1;
    if (kind === 'page') pages += 1;
    if (pages === nth) hangUp.abort();
  });
  const places = new FairPlaces({ perCaller: 1, total: 1, waiting: 1 }, () => new LedgerError('overloaded', 'full'));
  const memory = new MemoryBudget(1024 * 1024 * 1024);
  const walk = new Walk({ places, memory }, 'a caller', hangUp.signal);
  const id = { newId: () => absentId, randomBytes: (length: number) => Buffer.alloc(length), now: startMs };
  const call = { caller: { ...caller, world: 'sandbox' }, walk, signal: hangUp.signal, commandKey: null, ...id };
  const handler = handlers.get(method) as Handler;
  const outcome = await handler(request, call as unknown as Call).then(
    () => 'answered',
    (error: unknown) => (error instanceof LedgerError ? error.code : String(error)),
  );
  for (let turns = 0; turns < 5; turns++) await setImmediate();
  walk.end();
  return { outcome, pages, asksAfter, held: [places.held, memory.heldBytes()] };
}

describe('what a call reads', () => {
  test('every method of the API stands in one of the two lists', () => {
    const methods = apiServices.flatMap(({ name, methods }) => methods.map(({ localName }) => `${name}.${localName}`));
    expect([...Object.keys(walks), ...others].sort()).toEqual(methods.sort());
  });

  test.each(Object.keys(walks))('%s asks the store for nothing more once its caller has gone', async (method) => {
    for (const nth of [1, 2, 5]) {
      const { outcome, pages, asksAfter, held } = await hungUpAt(method, nth);
      expect({ nth, hasRead: pages > 0, asksAfter, held }).toEqual({ nth, hasRead: true, asksAfter: 0, held: [0, 0] });
      // One page may be all there is to read.
      if (pages === nth) expect(outcome).toBe('unavailable');
    }
  });

  test.each(others.filter((method) => !/^SandboxService|appendEvents$|\.follow/.test(method)))(
    '%s asks no store for a list',
    async (method) => {
      let pages = 0;
      const handlers = endlessApi((kind) => {
        if (kind === 'page') pages += 1;
      });
      const caller = { actorId: buyer, world: 'sandbox' };
      const call = { caller, commandKey: null, now: startMs, newId: () => ledgerId };
      const request = { uuid: masterId, ledgerId, actorId: buyer, id: ledgerId };
      // Whatever is missing here to carry the call out comes behind its reading.
      await handlers
        .get(method)?.(request, call as never)
        .catch(() => {});
      expect(pages).toBe(0);
    },
  );
});
