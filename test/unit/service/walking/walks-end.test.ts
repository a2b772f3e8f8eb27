import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type ErrorCode, LedgerError } from '../../../../src/domain/errors.ts';
import { type ApiParts, apiOf } from '../../../../src/node/api.ts';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { FairPlaces } from '../../../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { BehindLogs } from '../../../../src/service/log-identity/behind-logs.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { Walk } from '../../../../src/service/walking/walk.ts';
import { buyer, ledgerId, masterId, stranger, supplier } from '../../../support/commands.ts';
import {
  absentId,
  endlessAccesses,
  endlessLedgers,
  endlessRecords,
  engagementId,
  keyedId,
  type OnAsk,
} from '../../../support/endless-stores.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { newKeyPair } from '../../../support/parties.ts';
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

/** How a call ends: with its answer, with a command for a ledger's actor, or with an error of this code. */
type End = 'answered' | 'submitted' | ErrorCode;
interface SingleLooks {
  readonly request: object;
  readonly caller?: { readonly actorId: string };
  /** Answered if not given. */
  readonly end?: End;
  /** It answers what the node knows, or writes only. */
  readonly asksNothing?: true;
}

/** The kid of the only key of an actor that has one. */
const kid = `svc:actor:${keyedId}#key-1`;
const keyed = { request: { actorId: keyedId, kid }, caller: { actorId: keyedId } };
const { publicKey } = newKeyPair();

/**
 * The methods that ask a store for single things, or for a bounded number of them, and a request for each that comes to
 * its end: nothing that it reads is hidden behind a check that the request does not pass.
 */
const looks: Readonly<Record<string, SingleLooks>> = {
  'HealthService.getHealth': { request: {}, asksNothing: true },
  'HealthService.getTerms': { request: {}, asksNothing: true },
  'DeveloperService.registerDeveloper': {
    request: { name: 'a', email: 'a@b.example', region: 'eu', publicKey },
    asksNothing: true,
  },
  // All keys of these stores are revoked.
  'DeveloperService.revokeApiKey': { request: { keyId: ledgerId }, end: 'not_found' },
  'ActorService.createActor': { request: { publicKey }, asksNothing: true },
  'ActorService.getActor': { request: { actorId: buyer } },
  'ActorService.lookupActor': { request: { svcId: `svc:actor:${buyer}` } },
  'ActorService.listActorKeys': { request: { actorId: buyer, includeRevoked: true } },
  'ActorService.enrollActorKey': { request: { actorId: buyer, publicKey } },
  'ActorService.preferActorKey': keyed,
  'ActorService.revokeActorKey': keyed,
  'ResolverService.resolveActor': { request: { svcUri: `svc:actor:${buyer}` } },
  'ResolverService.getAuthority': { request: {}, asksNothing: true },
  'OrganizationService.onboardOrganization': {
    request: {
      legalName: 'A',
      country: 'DE',
      vatTaxNumber: '1',
      primaryEmail: 'a@b.example',
      termsVersion: '1',
      declarationHash: '1',
    },
  },
  'OrganizationService.getOrganization': { request: { id: ledgerId } },
  'OrganizationService.enrichOrganization': { request: { organizationId: ledgerId, tradeName: 'A' } },
  'EntityService.onboardEntity': {
    request: { entityType: 'DEVICE', uniqueId: '1', displayName: 'A', ownerActorId: buyer, publicKey },
  },
  'EntityService.getEntity': { request: { actorId: buyer } },
  'EntityService.createRootLedger': { request: {} },
  'EntityService.setArlGate': { request: { requireArl: true } },
  'EngagementService.createEngagement': { request: { counterpartyActorId: supplier, purpose: 'P' } },
  'LedgerService.createLedger': { request: { buyerActorId: buyer, supplierActorId: supplier } },
  'MasterService.getMaster': { request: { uuid: masterId } },
  'MasterService.appendEvent': { request: { uuid: masterId, eventType: 'NOTED', payload: '{}' }, end: 'submitted' },
  'MasterService.closeMaster': { request: { uuid: masterId }, end: 'submitted' },
  'MasterService.grantMasterAccess': {
    request: { uuid: masterId, actorId: stranger, access: 'read' },
    end: 'submitted',
  },
  'MasterService.revokeMasterAccess': { request: { uuid: masterId, linkId: ledgerId }, end: 'submitted' },
  'DelegationService.grantOrganizationDelegation': {
    request: { organizationId: ledgerId, delegateActorId: stranger, role: 'OPS' },
    end: 'submitted',
  },
  'DelegationService.revokeOrganizationDelegation': {
    request: { organizationId: ledgerId, delegateActorId: stranger },
    end: 'submitted',
  },
  'DelegationService.grantMasterDelegation': {
    request: { masterId, delegateActorId: stranger, role: 'OPS' },
    end: 'submitted',
  },
  'DelegationService.revokeMasterDelegation': { request: { masterId, delegateActorId: stranger }, end: 'submitted' },
  'WebhookService.deleteWebhook': { request: { id: ledgerId } },
  'WebhookService.testWebhook': { request: { id: ledgerId } },
};

/** Streams: they last, and have a walk for each part. What a run of the sandbox calls are methods of this API. */
const streams = [
  'SandboxService.runSandbox',
  'LedgerService.followLedgerEvents',
  'MasterService.followMasterEvents',
  'MasterService.appendEvents',
];

class Submitted extends Error {}
/** Every ledger is there already. */
const submit = async ({ kind }: { readonly kind: string }): Promise<never> => {
  throw kind === 'open_ledger' ? new LedgerError('already_exists', 'The ledger is there.') : new Submitted();
};

/** The whole API over stores without end. */
function endlessApi(onAsk: OnAsk): ReadonlyMap<string, Handler> {
  let laterMs = 0;
  const records = endlessRecords(onAsk);
  const ledgers = endlessLedgers(onAsk);
  const parts = {
    memory: new MemoryBudget(1024 * 1024 * 1024),
    ledgers,
    records,
    changes: changeMutex(),
    reading: new LedgerReading(ledgers, () => startMs),
    seals: async () => [],
    provenLogs: provenLogsOver(ledgers),
    access: { log: endlessAccesses(onAsk), queue: { flush: async () => {} } },
    directory: { submit },
    endings: { during: (_kid: string, _at: string, store: () => Promise<unknown>) => store() },
    apiKeys: { forget: () => {} },
    authority: { keys: [] },
    revocationLeadMs: 0,
    identities: identitiesIn(records, () => startMs),
    // Time goes on, so that the end of a key comes.
    clock: { now: () => startMs + laterMs++ },
    webhooks: {
      targets: { production: false, ownPorts: () => new Set(), ownAddresses: () => [] },
      work: { ended: () => {}, queued: () => {} },
    },
    storeChecks: [],
    logIdentity: { behind: new BehindLogs(false), serviceName: 'a', keys: [], previous: [] },
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
  test('every method of the API stands in one of the three lists', () => {
    const methods = apiServices.flatMap(({ name, methods }) => methods.map(({ localName }) => `${name}.${localName}`));
    expect([...Object.keys(walks), ...Object.keys(looks), ...streams].sort()).toEqual(methods.sort());
  });

  test.each(Object.keys(walks))('%s asks the store for nothing more once its caller has gone', async (method) => {
    for (const nth of [1, 2, 5]) {
      const { outcome, pages, asksAfter, held } = await hungUpAt(method, nth);
      expect({ nth, hasRead: pages > 0, asksAfter, held }).toEqual({ nth, hasRead: true, asksAfter: 0, held: [0, 0] });
      // One page may be all there is to read.
      if (pages === nth) expect(outcome).toBe('unavailable');
    }
  });

  test.each(Object.entries(looks))(
    '%s asks no store for a list',
    async (method, { request, caller = world, ...its }) => {
      const asks = { page: 0, look: 0 };
      const handlers = endlessApi((kind) => {
        asks[kind] += 1;
      });
      const call = {
        caller: { ...caller, world: 'sandbox' },
        signature: null,
        commandKey: null,
        now: startMs,
        deliveryChain: null,
        newId: () => absentId,
        randomBytes: (length: number) => Buffer.alloc(length),
        takeJson: () => null,
        setHeader: () => {},
        markVerified: () => {},
        named: () => {},
      };
      const end = await handlers
        .get(method)?.(request, call as never)
        .then(
          () => 'answered',
          (error: unknown) => {
            if (error instanceof Submitted) return 'submitted';
            return error instanceof LedgerError ? `${error.code} ${error.message}` : error;
          },
        );
      expect(end).toEqual(expect.stringMatching(`^${its.end ?? 'answered'}`));
      expect({ pages: asks.page, hasLooked: asks.look > 0 }).toEqual({ pages: 0, hasLooked: its.asksNothing !== true });
    },
  );
});
