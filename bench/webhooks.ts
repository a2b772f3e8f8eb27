import { type ChildProcess, fork } from 'node:child_process';
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { defaultShardCount } from '../src/actors/bounds.ts';
import { Directory } from '../src/actors/directory.ts';
import { localPlacement } from '../src/actors/local-placement.ts';
import { noPeers } from '../src/actors/no-peers.ts';
import type { CommandBase } from '../src/domain/command.ts';
import { isoTime } from '../src/domain/time.ts';
import { uuidV7 } from '../src/domain/uuid.ts';
import { WEBHOOK_SECRET_BYTES, webhookSecret } from '../src/domain/webhook-signature.ts';
import { createLog } from '../src/log.ts';
import { createSecretBox } from '../src/service/secret-box.ts';
import { type SubscriptionRecord, secretContext, subscriptionsIn } from '../src/service/subscription-record.ts';
import { openLmdb } from '../src/store/lmdb/open.ts';
import { machineUtilization, systemClock, threadProcessorMs } from '../src/system.ts';
import { openWebhooks } from '../src/webhook/open-webhooks.ts';
import type { ReceiverKind, ReceiverReport } from './webhook-receivers.ts';

/**
 * `node bench/webhooks.ts [events] [rounds]`: webhooks over an LMDB store and real connections.
 *
 * 1. Isolation: events to 20 subscriptions, of which 2 are dead and 1 slow; then to the 17 healthy ones alone.
 * 2. Appends with 3 matching subscriptions and with none, in turns; without doors and signatures, so that what webhooks cost weighs most.
 */
const eventsWanted = Number(process.argv[2] ?? 10_000);
const rounds = Number(process.argv[3] ?? 20);
const roundMs = 1_500;
const inFlight = 256;

const newId = () => uuidV7(Date.now(), randomBytes(10));
const actorId = newId();

async function openNode() {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-webhooks-'));
  const stores = await openLmdb({ dataDir, now: Date.now, onFatal: (error) => console.error(error) });
  const secrets = createSecretBox(randomBytes(32), randomBytes);
  const webhooks = openWebhooks({
    ledgers: stores.ledgers,
    records: stores.records,
    secrets,
    policy: { production: false, ownPorts: () => new Set() },
    clock: systemClock,
    log: createLog('warn'),
    registry: new Registry(),
    mine: () => true,
    utilization: machineUtilization(),
    processorMs: threadProcessorMs,
    monotonicMs: () => performance.now(),
  });
  const { privateKey } = generateKeyPairSync('ed25519');
  const directory = new Directory({
    store: stores.ledgers,
    keys: { fresh: () => undefined, read: async () => ({ keys: new Map() }) },
    authority: () => ({
      keyId: 'svc:authority#key-1',
      sign: (digest) => sign(null, digest, privateKey).toString('base64'),
    }),
    clock: systemClock,
    random: randomBytes,
    meter: {
      committed: () => {},
      verdict: () => {},
      claimed: () => {},
      fenced: () => {},
      unknownOutcome: () => {},
      activated: () => {},
    },
    outbox: webhooks,
    self: 'bench',
    shardCount: defaultShardCount,
    placement: localPlacement('bench'),
    peers: noPeers,
  });
  webhooks.start();
  const subscriptions = subscriptionsIn(stores.records);
  return {
    webhooks,
    directory,
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
        seen: {},
        sealedSecret: secrets.seal(Buffer.from(secret), secretContext(id)),
        endedAt: null,
        endedBy: null,
      };
      webhooks.subscribed(await subscriptions.create(subscription));
      return id;
    },
    unsubscribe: async (id: string) => {
      await subscriptions.end(id, isoTime(Date.now()), 'owner');
      webhooks.ended(id);
    },
    close: async () => {
      await directory[Symbol.asyncDispose]();
      await webhooks[Symbol.asyncDispose]();
      await stores[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

type BenchNode = Awaited<ReturnType<typeof openNode>>;

function base(ledgerId: string): CommandBase {
  return {
    ledgerId,
    actorId,
    actorType: 'service',
    signature: null,
    signatureRule: 'optional',
    marks: [],
    deadline: Number.MAX_SAFE_INTEGER,
  };
}

async function openMaster({ directory }: BenchNode): Promise<() => Promise<unknown>> {
  const ledgerId = newId();
  const masterId = newId();
  const none = { supplierActorId: null, buyerOrganizationId: null, supplierOrganizationId: null, primaryActorId: null };
  const facts = { ...none, counterpartyActorId: null, organizationId: null, entityId: null, purpose: null };
  await directory.submit({
    ...base(ledgerId),
    kind: 'open_ledger',
    facts: { ...facts, type: 'ORDER', buyerActorId: actorId },
    registeredPayload: null,
  });
  await directory.submit({ ...base(ledgerId), kind: 'create_master', masterId, businessRef: 'PO-1', scope: 'ORDER' });
  const payload = `{"business_ref":"PO-1","cartons":12,"note":"${'x'.repeat(200)}","scope":"ORDER"}`;
  return () =>
    directory.submit({
      ...base(ledgerId),
      kind: 'append_event',
      masterId,
      eventType: 'STEP',
      payload,
      causedByHash: null,
    });
}

class Receivers {
  readonly #child: ChildProcess;
  readonly urls: readonly string[];

  private constructor(child: ChildProcess, urls: readonly string[]) {
    this.#child = child;
    this.urls = urls;
  }

  static async start(kinds: readonly ReceiverKind[]): Promise<Receivers> {
    const child = fork(new URL('./webhook-receivers.ts', import.meta.url), kinds);
    const { urls } = await nextMessage<{ urls: string[] }>(child);
    return new Receivers(child, urls);
  }

  async reports(): Promise<ReceiverReport[]> {
    this.#child.send('report');
    return (await nextMessage<{ reports: ReceiverReport[] }>(this.#child)).reports;
  }

  stop(): void {
    this.#child.disconnect();
  }
}

function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve) => child.once('message', (message) => resolve(message as T)));
}

const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Seconds until all healthy receivers had all events, and what memory took meanwhile. */
async function isolation(sick: readonly ReceiverKind[]) {
  const node = await openNode();
  const receivers = await Receivers.start([...Array<ReceiverKind>(17).fill('healthy'), ...sick]);
  const append = await openMaster(node);
  for (const url of receivers.urls) await node.subscribe(url);
  const started = Date.now();
  let heldMax = 0;
  let rssMax = 0;
  let heapMax = 0;
  const cpuBefore = process.cpuUsage();
  const watch = setInterval(() => {
    heldMax = Math.max(heldMax, node.webhooks.held);
    const { rss, heapUsed } = process.memoryUsage();
    rssMax = Math.max(rssMax, rss);
    heapMax = Math.max(heapMax, heapUsed);
  }, 100);
  let left = eventsWanted;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await append();
    }),
  );
  const appendedS = (Date.now() - started) / 1_000;
  let reports: ReceiverReport[];
  do {
    await sleep(250);
    reports = await receivers.reports();
  } while (reports.some(({ kind, received }) => kind === 'healthy' && received < eventsWanted));
  clearInterval(watch);
  const { user, system } = process.cpuUsage(cpuBefore);
  const healthy = reports.filter(({ kind }) => kind === 'healthy');
  const seconds = (Math.max(...healthy.map(({ lastAtMs }) => lastAtMs)) - started) / 1_000;
  console.log(
    `17 healthy${sick.length === 0 ? '' : `, ${sick.join(', ')}`}: ${eventsWanted} events appended in ${appendedS.toFixed(1)} s, ` +
      `all delivered after ${seconds.toFixed(1)} s (${Math.round((17 * eventsWanted) / seconds)}/s), in order: ` +
      `${healthy.every(({ inOrder }) => inOrder)}; in memory at most ${heldMax} deliveries, heap ${mib(heapMax)}, RSS ${mib(rssMax)} MiB; processor ${((user + system) / 1e6).toFixed(1)} s; ` +
      `others got ${reports.filter(({ kind }) => kind !== 'healthy').map(({ kind, received }) => `${kind} ${received}`)}`,
  );
  receivers.stop();
  await node.close();
  return seconds;
}

interface Round {
  readonly perSecond: number;
  /** Microseconds of processor time an append, of all threads: says more than time where other programs run too. */
  readonly cpuUs: number;
}

async function round(append: () => Promise<unknown>): Promise<Round> {
  const cpuBefore = process.cpuUsage();
  const end = performance.now() + roundMs;
  let count = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (performance.now() < end) {
        await append();
        count += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  return { perSecond: (count * 1_000) / roundMs, cpuUs: (user + system) / count };
}

/** Both kinds of rounds in turns on one node, so that what else the machine does weighs on both alike. */
async function throughput(): Promise<void> {
  const receivers = await Receivers.start(['healthy', 'healthy', 'healthy']);
  const node = await openNode();
  const append = await openMaster(node);
  for (let at = 0; at < 3; at++) await round(append);
  const without: Round[] = [];
  const withThree: Round[] = [];
  const before = received(await receivers.reports());
  for (let at = 0; at < rounds; at++) {
    without.push(await round(append));
    const ids = await Promise.all(receivers.urls.map((url) => node.subscribe(url)));
    withThree.push(await round(append));
    await Promise.all(ids.map((id) => node.unsubscribe(id)));
  }
  const sent = received(await receivers.reports()) - before;
  receivers.stop();
  await node.close();
  const mean = (of: readonly Round[], name: keyof Round) => of.reduce((sum, one) => sum + one[name], 0) / of.length;
  const told = (of: readonly Round[]) =>
    `${Math.round(mean(of, 'perSecond'))}/s (${mean(of, 'cpuUs').toFixed(1)} µs of processor each)`;
  console.log(`appends alone ${told(without)}, beside 3 subscriptions ${told(withThree)}`);
  console.log(`which got ${Math.round((sent * 1_000) / (rounds * roundMs))}/s meanwhile`);
  console.log(`${((1 - mean(withThree, 'perSecond') / mean(without, 'perSecond')) * 100).toFixed(1)} % less`);
  console.log(
    `by round: ${without.map((one, at) => (1 - (withThree[at]?.perSecond ?? 0) / one.perSecond).toFixed(2)).join(' ')}`,
  );
}

function received(reports: readonly ReceiverReport[]): number {
  return reports.reduce((sum, report) => sum + report.received, 0);
}

if (eventsWanted > 0) {
  const alone = await isolation([]);
  const together = await isolation(['dead', 'dead', 'slow']);
  console.log(`with the other three the healthy ones need ${(together / alone).toFixed(2)} times as long`);
}
if (rounds > 0) await throughput();
process.exit(0);
