import { randomBytes } from 'node:crypto';
import { type BatchLimits, BatchWindow } from '../actors/batching/batch-window.ts';
import { defaultShardCount } from '../actors/bounds.ts';
import { DeadlineWatch } from '../actors/inbox/deadline-watch.ts';
import { Directory } from '../actors/routing/directory.ts';
import type { Peers } from '../actors/routing/peers.ts';
import type { NodeId, Placement } from '../actors/routing/placement.ts';
import { LedgerError } from '../domain/errors.ts';
import type { Command } from '../domain/ledger/command.ts';
import { isoTime } from '../domain/values/time.ts';
import { uuidV7 } from '../domain/values/uuid.ts';
import { clientAddressBehind } from '../rpc/call/client-address.ts';
import { pooledRandom } from '../rpc/call/entropy.ts';
import { endpointsOf } from '../rpc/endpoints/endpoint.ts';
import { type GrpcListener, openGrpcListener } from '../rpc/grpc/main/listener.ts';
import { corsFor } from '../rpc/http/cors.ts';
import { openHttpListener } from '../rpc/http-listener.ts';
import { openInternalListener } from '../rpc/internal-listener.ts';
import type { Listener } from '../rpc/listening.ts';
import { createAnswerLog } from '../rpc/pipeline/answer-log.ts';
import { createCallRates } from '../rpc/pipeline/call-rates.ts';
import { createPipeline } from '../rpc/pipeline/pipeline.ts';
import type { Clock } from '../runtime/clock/clock.ts';
import { watchClock } from '../runtime/clock/clock-watch.ts';
import { implausibleClock, isPlausibleTime } from '../runtime/clock/plausible-clock.ts';
import {
  interfaceAddresses,
  machineUtilization,
  saturation,
  systemClock,
  threadProcessorMs,
} from '../runtime/clock/system-clock.ts';
import { FairPlaces } from '../runtime/limits/fair-places.ts';
import { limits } from '../runtime/limits/limits.ts';
import { MemoryBudget } from '../runtime/limits/memory-budget.ts';
import type { NodeLog } from '../runtime/telemetry/log.ts';
import { createMetrics } from '../runtime/telemetry/metrics.ts';
import { skippedWebhookSteps, webhookSteps } from '../sandbox/webhook-steps.ts';
import { checkCommandSignature } from '../service/actors/command-signature.ts';
import { Identities } from '../service/actors/identities.ts';
import { KeyEndings } from '../service/actors/key-endings.ts';
import { type AccessEntry, AccessQueue, accessKeptMs } from '../service/audit/access-history.ts';
import { openAuthority } from '../service/authority/authority.ts';
import { AuthorityWatch, untrusted } from '../service/authority/authority-watch.ts';
import type { StoreCheck } from '../service/calls/health.ts';
import { storedCredentials } from '../service/developers/entity-credentials.ts';
import { sealedSnapshots } from '../service/records/sealed-snapshots.ts';
import { createSecretBox } from '../service/records/secret-box.ts';
import { checkSecretsKey } from '../service/records/secrets-key-check.ts';
import { VerifyingThreads } from '../service/signatures/verifying-threads.ts';
import type { AccessLog } from '../store/access-log.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import { openWebhooks } from '../webhooks/open-webhooks.ts';
import { accessReport, meterAccesses } from './access-meter.ts';
import { actorMeter } from './actor-meter.ts';
import { apiOf } from './api.ts';
import type { Config } from './config.ts';
import { datedAppends } from './dated-appends.ts';
import { Listeners, readTls } from './listeners.ts';
import type { Membership } from './membership.ts';
import type { NodeKeys } from './node-keys.ts';
import { ownAddress } from './own-address.ts';
import { pages } from './pages.ts';
import { RecordSweeping } from './record-sweeping.ts';
import { refusedSnapshots } from './refused-snapshots.ts';
import { watchUnreadable } from './unreadable-records.ts';

/** The parts of a node. An embedded and a clustered node differ only in these. */
interface NodeParts {
  readonly config: Config;
  readonly keys: NodeKeys;
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly access: AccessLog;
  /** Shown in /health. */
  readonly stores: readonly StoreCheck[];
  /**
   * Ports of the store and lease servers, in addition to this node's own. No webhook goes to them, also not on
   * loopback.
   */
  readonly backendPorts?: ReadonlySet<number>;
  readonly self: NodeId;
  readonly placement: Placement;
  readonly peers: Peers;
  /** What a clustered node has in addition to placement and peers. */
  readonly membership?: Membership;
  /**
   * How far ahead of now a key's revocation is dated, ms: long enough that by then no node believes an older record. 0
   * on a single node.
   */
  readonly revocationLeadMs: number;
  /** Depends on the store. */
  readonly batchLimits: BatchLimits;
  /** The budget of a node whose membership also counts in it. Made here if left out. */
  readonly memory?: MemoryBudget;
  readonly clock: Clock;
  /** The machine's clock, under `clock`. The system's clock if left out. */
  readonly machine?: Pick<Clock, 'now'>;
  readonly log: NodeLog;
  /**
   * false once the embedded store has stopped writing for good, or while a cluster's store does not answer this node.
   */
  readonly isStoreWritable: () => boolean;
}

/** A node that serves calls. */
export interface RunningNode {
  readonly http: { readonly host: string; readonly port: number };
  readonly grpc: { readonly host: string; readonly port: number };
  readonly ops: { readonly host: string; readonly port: number };
  /** Sets readiness off, refuses new calls, waits for running calls (at most 10 s), and removes ledgers from memory. */
  stop(): Promise<void>;
}

/** Why a single node is not ready. */
const diskFailed = 'a write to the disk failed: nothing can be written, and the node stops';
/** How often old access history is removed. */
const accessSweepEveryMs = 60_000;

/** Makes and starts a node. Calls `close` after the node has stopped, or if it cannot be started. */
export async function startNodeOver(
  close: () => PromiseLike<void>,
  make: () => Promise<NodeParts>,
): Promise<RunningNode> {
  try {
    const node = await startNode(await make());
    return {
      ...node,
      stop: async () => {
        await node.stop();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Wires a node together and opens its listeners. This is the only place where all parts meet. */
export async function startNode(parts: NodeParts): Promise<RunningNode> {
  const { config, clock, log, records, ledgers, membership } = parts;
  const now = () => clock.now();
  const machine = parts.machine ?? systemClock;
  const isClockGood = () => isPlausibleTime(machine.now());
  const random = pooledRandom((bytes) => randomBytes(bytes));
  const production = config.mode === 'production';
  const secrets = createSecretBox(parts.keys.secrets, random);
  await checkSecretsKey(records, secrets);
  const authority = await openAuthority(records, parts.keys.authority, isoTime(now()));
  // A single node has its store to itself: no other node can change the key.
  const warn = (what: string, error?: unknown) => log.warn({ err: error }, what);
  const watch = membership === undefined ? null : new AuthorityWatch({ records, authority, clock, warn });
  await watch?.start();
  const verifying = new VerifyingThreads(undefined, undefined, config.queues.signaturesMax);
  const identities = new Identities(records, now, verifying.verify);
  const credentials = storedCredentials(records, identities, { production, now });
  const endings = new KeyEndings(identities);
  const memory = parts.memory ?? new MemoryBudget(config.memoryBudgetBytes);
  const places = new FairPlaces(config.reads, tooManyReads);
  const metrics = createMetrics({
    memory,
    reads: places,
    runningCalls: () => pipeline.running.size,
    mailboxDepth: () => directory.load().waiting,
    verificationQueue: () => verifying.waiting,
    isStoreWritable: parts.isStoreWritable,
    logLinesDropped: () => log.linesDropped(),
  });
  const unwatchUnreadable = watchUnreadable({ log, registry: metrics.registry });
  const monotonicMs = () => performance.now();
  let listening: readonly number[] = [];
  const closed = [...config.webhookClosedPorts, ...(parts.backendPorts ?? [])];
  const targets = {
    production,
    ownPorts: () => new Set([...listening, ...closed, ...(membership?.ports() ?? [])]),
    ownAddresses: interfaceAddresses,
  };
  const webhooks = openWebhooks({
    ledgers,
    records,
    secrets,
    policy: targets,
    clock,
    log,
    registry: metrics.registry,
    ownsShardOf: (id) => membership?.ownsShardOf(id) ?? true,
    readBarrier: (ledgerId) => directory.readBarrier(ledgerId),
    tellOthers: membership === undefined ? null : (id) => membership.tellOthers(id),
    utilization: machineUtilization(),
    processorMs: threadProcessorMs,
    monotonicMs,
  });
  const isClockRight = () => membership?.isClockRight() ?? true;
  const directory = new Directory({
    store: sealedSnapshots(
      datedAppends(ledgers, isClockGood),
      parts.keys.secrets,
      refusedSnapshots({ log, registry: metrics.registry }),
    ),
    keys: endings,
    authority: () => authority,
    clock,
    random,
    meter: actorMeter(metrics),
    outbox: webhooks,
    self: parts.self,
    shardCount: membership?.shardCount ?? defaultShardCount,
    placement: parts.placement,
    peers: parts.peers,
    queueLimits: { commandsMax: config.queues.ledgerCommandsMax, bytesMax: config.queues.ledgerBytesMax },
    checksRows: membership !== undefined,
    batches: new BatchWindow(clock, parts.batchLimits, saturation()),
    deadlines: new DeadlineWatch(clock),
    ...(membership === undefined ? {} : { activationsPerSecond: membership.activationsPerSecond, isClockRight }),
  });
  const accesses = new AccessQueue({ log: parts.access, clock, random, report: accessReport(log) });
  meterAccesses(metrics.registry, accesses);
  const tls = readTls(config, systemClock.now());
  // Opened last. The sandbox run is served on this listener and also calls it, like any client.
  let http: Listener;
  const api = apiOf({
    ledgers,
    records,
    access: { log: parts.access, queue: accesses },
    identities,
    verifyRead: verifying.verifyRead,
    endings,
    directory,
    authority,
    apiKeys: credentials,
    clock,
    stores: parts.stores,
    production,
    revocationLeadMs: parts.revocationLeadMs,
    memory,
    webhooks: { secrets, targets, work: webhooks },
    sandbox: {
      target: () => ownAddress(config, http, tls?.cert ?? null),
      webhookSteps: () =>
        production
          ? skippedWebhookSteps('webhooks go to public addresses alone, and this run has none')
          : webhookSteps((id) => membership?.ownsShardOf(id) ?? true),
      now,
    },
  });

  const newId = () => uuidV7(now(), randomBytes(10));
  const endpoints = endpointsOf(api);
  const history = (entry: AccessEntry) => accesses.note(entry);
  const answers = createAnswerLog({ log, metrics, history, monotonicMs, now });
  const rates = createCallRates(config.rateLimits);
  const walks = { places, memory };
  const pipeline = createPipeline({
    credentials,
    records,
    secrets,
    rates,
    walks,
    answers,
    random,
    now,
    monotonicMs,
    isClockRight,
  });
  const clientAddress = clientAddressBehind(config.trustedProxies);
  let isServing = false;
  let stopping = false;

  const listeners = new Listeners();
  const open = async <T extends Listener>(portVariable: string, port: number, opening: Promise<T>): Promise<T> => {
    const [hostVariable, host] = portVariable === 'OPS_PORT' ? ['OPS_HOST', config.opsHost] : ['HOST', config.host];
    try {
      return await listeners.add({ portVariable, port, hostVariable, host }, opening);
    } catch (error) {
      watch?.stop();
      throw error;
    }
  };
  const ops = await open(
    'OPS_PORT',
    config.opsPort,
    openInternalListener(
      {
        metrics,
        readiness: async () => {
          if (stopping) return { ready: false, reason: 'stopping' };
          if (!isServing) return { ready: false, reason: 'starting: not all ports are open yet' };
          const reason = untrusted(authority);
          if (reason !== null) return { ready: false, reason };
          if (!isClockGood()) return { ready: false, reason: implausibleClock(machine.now()) };
          if (membership === undefined && !parts.isStoreWritable()) return { ready: false, reason: diskFailed };
          return membership?.readiness() ?? { ready: true };
        },
        ...(membership === undefined
          ? {}
          : { pages: membership.pages, takeConnection: (socket, proved) => membership.takeConnection(socket, proved) }),
      },
      config.opsHost,
      config.opsPort,
    ),
  );
  const grpc: GrpcListener = await open(
    'GRPC_PORT',
    config.grpcPort,
    openGrpcListener(
      { endpoints, pipeline, answers, clientAddress, newId, tls, bounds: config.grpcBounds, memory, now },
      config.host,
      config.grpcPort,
    ),
  );
  const httpParts = {
    endpoints,
    pipeline,
    answers,
    cors: corsFor(config.corsOrigins),
    clientAddress,
    newId,
    tls,
    tlsOnly: tls !== null || (production && config.tlsTerminated),
    memory,
    monotonicMs,
    pages,
  };
  http = await open('PORT', config.port, openHttpListener(httpParts, config.host, config.port));
  listening = [http.port, grpc.port, ops.port];
  const ports = { http: http.port, grpc: grpc.port, internal: ops.port };
  const checkSignature = (command: Command) => checkCommandSignature(identities, command);
  membership?.join(directory, webhooks, metrics.registry, ports, checkSignature);
  webhooks.start();

  const sweeping = new RecordSweeping({
    records,
    clock,
    log,
    registry: metrics.registry,
    // One node sweeps for all: the owner of this name's shard.
    isSweeper: () => membership?.ownsShardOf('records that have run out') ?? true,
  });
  const unwatchClock = watchClock({ clock, machine, log, registry: metrics.registry });
  const accessSweep = setInterval(() => {
    // By a clock that is far ahead, all of it would be too old.
    if (!isClockRight()) return;
    parts.access.sweep(now() - accessKeptMs).catch((error) => log.warn({ err: error }, 'sweeping failed'));
  }, accessSweepEveryMs).unref();
  // Last: a client that learns that this node is ready may call any port at once.
  isServing = true;

  return {
    http,
    grpc,
    ops,
    stop: async () => {
      stopping = true;
      clearInterval(accessSweep);
      unwatchClock();
      unwatchUnreadable();
      grpc.setServing(false);
      await membership?.leave();
      pipeline.running.endStreams(stoppingNode());
      await Promise.all([
        http.close(limits.stopGraceMs),
        grpc.close(limits.stopGraceMs),
        webhooks[Symbol.asyncDispose](),
        sweeping[Symbol.asyncDispose](),
      ]);
      await directory[Symbol.asyncDispose]();
      await verifying[Symbol.asyncDispose]();
      await accesses[Symbol.asyncDispose]();
      watch?.stop();
      await membership?.close();
      await ops.close(0);
    },
  };
}

function tooManyReads(): LedgerError {
  return new LedgerError(
    'overloaded',
    'More reads wait than this node can take: retry in a moment, and read less at once.',
    { bound: 'READS_WAITING' },
  );
}

function stoppingNode(): LedgerError {
  return new LedgerError(
    'unavailable',
    'This node is stopping: open a new stream, and send again what was not answered, with the same Idempotency-Keys.',
  );
}
