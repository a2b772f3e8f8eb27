import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { BatchWindow } from '../src/actors/batching/batch-window.ts';
import { batchLimits, defaultShardCount } from '../src/actors/bounds.ts';
import { DeadlineWatch } from '../src/actors/inbox/deadline-watch.ts';
import { SaveQueue } from '../src/actors/ledger/save-queue.ts';
import { Directory } from '../src/actors/routing/directory.ts';
import { noPeers } from '../src/actors/routing/peers.ts';
import { localPlacement } from '../src/actors/routing/placement.ts';
import { noFacts } from '../src/domain/event/facts.ts';
import { WEBHOOK_SECRET_BYTES, webhookSecret } from '../src/domain/keys/webhook-signature.ts';
import type { CommandBase } from '../src/domain/ledger/command.ts';
import { isoTime } from '../src/domain/values/time.ts';
import { uuidV7 } from '../src/domain/values/uuid.ts';
import { machineUtilization, systemClock, threadProcessorMs } from '../src/runtime/clock/system-clock.ts';
import { MemoryBudget } from '../src/runtime/limits/memory-budget.ts';
import { createLog } from '../src/runtime/telemetry/log.ts';
import { LedgerReading } from '../src/service/reading/ledger-reading.ts';
import { createSecretBox } from '../src/service/records/secret-box.ts';
import { unboundedWalk } from '../src/service/walking/walk.ts';
import { deliveriesIn } from '../src/service/webhooks/deliveries.ts';
import type { DeliveryRecord } from '../src/service/webhooks/delivery-record.ts';
import {
  type SubscriptionRecord,
  secretContext,
  subscriptionsIn,
} from '../src/service/webhooks/subscription-record.ts';
import { openLmdb } from '../src/store/lmdb/open.ts';
import { openWebhooks } from '../src/webhooks/open-webhooks.ts';

const newId = () => uuidV7(Date.now(), randomBytes(10));
const actorId = newId();
const pageRecords = 1_000;

/**
 * Webhooks and ledgers over an LMDB store of their own: a node without transports and signatures, so that what webhooks
 * cost weighs most.
 */
export async function openWebhookNode() {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-webhooks-'));
  const stores = await openLmdb({ dataDir, now: Date.now, onFatal: (error) => console.error(error) });
  const secrets = createSecretBox(randomBytes(32), randomBytes);
  const webhooks = openWebhooks({
    ledgers: stores.ledgers,
    records: stores.records,
    reading: new LedgerReading(stores.ledgers, Date.now),
    memory: new MemoryBudget(256 * 1024 * 1024),
    secrets,
    policy: { production: false, ownPorts: () => new Set(), ownAddresses: () => [] },
    clock: systemClock,
    log: createLog('warn'),
    registry: new Registry(),
    ownsShardOf: () => true,
    readBarrier: (ledgerId) => directory.readBarrier(ledgerId),
    tellOthers: null,
    subscriptionsMax: 16_384,
    utilization: machineUtilization(),
    processorMs: threadProcessorMs,
    monotonicMs: () => performance.now(),
  });
  const { privateKey } = generateKeyPairSync('ed25519');
  const directory = new Directory({
    store: stores.ledgers,
    keys: { fresh: () => undefined, read: async () => new Map(), withEnds: (_actorId, keys) => keys },
    authority: () => ({
      keyId: 'svc:authority#key-1',
      sign: (digest) => sign(null, digest, privateKey).toString('base64'),
    }),
    clock: systemClock,
    random: randomBytes,
    meter: {
      committed: () => {},
      answered: () => {},
      claimed: () => {},
      fenced: () => {},
      damaged: () => {},
      unknownOutcome: () => {},
      activated: () => {},
    },
    batches: new BatchWindow(systemClock, batchLimits.commitsTogether),
    deadlines: new DeadlineWatch(systemClock),
    saves: new SaveQueue(systemClock),
    commitListener: webhooks,
    self: 'bench',
    shardCount: defaultShardCount,
    placement: localPlacement('bench'),
    peers: noPeers,
  });
  webhooks.start();
  const subscriptions = subscriptionsIn(stores.records);
  const deliveries = deliveriesIn(stores.records, new MemoryBudget(0));
  return {
    /** Deliveries in memory. */
    held: () => webhooks.held,
    subscribe: async (url: string): Promise<string> => {
      const id = newId();
      const secret = webhookSecret(randomBytes(WEBHOOK_SECRET_BYTES));
      const subscription: SubscriptionRecord = {
        id,
        actorId,
        url,
        eventTypes: ['STEP'],
        ledgerId: null,
        createdAt: isoTime(Date.now()),
        sealedSecret: secrets.seal(Buffer.from(secret), secretContext(id)),
        endedAt: null,
        endedBy: null,
      };
      webhooks.subscribed(await subscriptions.create(subscription));
      return id;
    },
    /** How many deliveries of a subscription are recorded, by status. */
    statuses: async (id: string): Promise<Record<DeliveryRecord['status'], number>> => {
      const counts = { PENDING: 0, DELIVERED: 0, FAILED: 0 };
      for (let offset = 0; ; offset += pageRecords) {
        const page = await deliveries.ofSubscription(unboundedWalk(), id, { limit: pageRecords, offset });
        for (const { status } of page) counts[status] += 1;
        if (page.length < pageRecords) return counts;
      }
    },
    /** A master on a ledger of its own; answers what appends an event to it. */
    openMaster: () => openMaster(directory),
    close: async () => {
      await directory[Symbol.asyncDispose]();
      await webhooks[Symbol.asyncDispose]();
      await stores[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function openMaster(directory: Directory): Promise<() => Promise<unknown>> {
  const [ledgerId, masterId] = [newId(), newId()];
  const base: CommandBase = {
    ledgerId,
    actorId,
    actorType: 'service',
    signature: null,
    signatureRule: 'optional',
    commandKeys: [],
    deadline: Number.MAX_SAFE_INTEGER,
  };
  await directory.submit({
    ...base,
    kind: 'open_ledger',
    facts: { ...noFacts, type: 'ORDER', buyerActorId: actorId },
    registeredPayload: null,
  });
  await directory.submit({ ...base, kind: 'create_master', masterId, businessRef: 'PO-1', scope: 'ORDER' });
  const payload = `{"business_ref":"PO-1","cartons":12,"note":"${'x'.repeat(200)}","scope":"ORDER"}`;
  const append = { ...base, kind: 'append_event', masterId, eventType: 'STEP', payload, causedByHash: null } as const;
  return () => directory.submit({ ...append });
}
