import { create, type DescService, type MessageInitShape } from '@bufbuild/protobuf';
import { LedgerError } from '../../src/domain/errors.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import type { Command } from '../../src/domain/ledger/command.ts';
import { isoTime } from '../../src/domain/values/time.ts';
import { type FollowLedgerEventsRequestSchema, LedgerService } from '../../src/gen/svc/v1/ledgers_pb.ts';
import { type FollowMasterEventsRequestSchema, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import type { StreamCall } from '../../src/rpc/call/incoming-call.ts';
import type { RunningCall } from '../../src/rpc/call/running-call.ts';
import { type Endpoint, endpointsOf, rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import type { Implementation } from '../../src/rpc/endpoints/handlers.ts';
import { createAnswerLog } from '../../src/rpc/pipeline/answer-log.ts';
import { createCallRates } from '../../src/rpc/pipeline/call-rates.ts';
import { createPipeline } from '../../src/rpc/pipeline/pipeline.ts';
import { FairPlaces } from '../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { createMetrics } from '../../src/runtime/telemetry/metrics.ts';
import type { AccessEntry } from '../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../src/service/audit/access-record.ts';
import type { Credentials } from '../../src/service/developers/credentials.ts';
import type { FollowMeter } from '../../src/service/following/follow-meter.ts';
import { followLedgerEvents, followMasterEvents } from '../../src/service/following/follow-methods.ts';
import type { FollowersParts } from '../../src/service/following/follow-parts.ts';
import type { FollowAnswer } from '../../src/service/following/followed-event.ts';
import { FollowedPages } from '../../src/service/following/followed-pages.ts';
import { Followers } from '../../src/service/following/followers.ts';
import { GrantsMemory } from '../../src/service/following/grants-memory.ts';
import { LedgerHeads } from '../../src/service/following/ledger-heads.ts';
import type { ProvenLogs } from '../../src/service/proofs/proven-logs.ts';
import { LedgerReading } from '../../src/service/reading/ledger-reading.ts';
import { createSecretBox } from '../../src/service/records/secret-box.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { chainEntries } from './chain-entries.ts';
import { ManualClock, settled } from './clock.ts';
import { createMaster, ledgerId, masterId, openLedger } from './commands.ts';
import { fakeCredentials } from './listening-node.ts';
import { MemoryLedgerStore } from './memory-store/ledger-store.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';
import { provenLogsOver } from './proofs-rig.ts';
import { Chain, countingBytes, startMs } from './world.ts';

const off = { perSecond: 0, burst: 0 };
const manyPlaces = { perCaller: 1_000, total: 1_000, waiting: 1_000 };

interface RigOptions {
  /** Changes the store that followers read. */
  readonly store?: (store: LedgerStore) => LedgerStore;
  /** Changes what signs checkpoints. */
  readonly logs?: (logs: ProvenLogs) => FollowersParts['logs'];
  /** Nothing waits if left out. */
  readonly limiter?: FollowersParts['limiter'];
  readonly bounds?: FollowersParts['bounds'];
  readonly memory?: MemoryBudget;
}

/**
 * The followers of a node behind its pipeline, over a ledger in a store in memory. Time passes only as the test says.
 * An API key is the id of its actor.
 */
export class FollowersRig {
  readonly clock = new ManualClock(startMs);
  readonly chain = new Chain();
  readonly store: LedgerStore;
  readonly heads: LedgerHeads;
  readonly parts: FollowersParts;
  readonly followers: Followers;
  readonly records: AccessRecord[] = [];
  readonly ended: string[] = [];
  /** What streams that follow hold. */
  readonly memory: MemoryBudget;
  readonly counts = { pagesRead: 0, eventsRead: 0, sent: 0 };
  /** From the commit of each event to its sending, ms. */
  readonly lags: number[] = [];
  readonly #written: MemoryLedgerStore;
  readonly #endpoints: ReadonlyMap<string, Endpoint>;
  readonly #pipeline: ReturnType<typeof createPipeline>;
  readonly #revoked = new Set<string>();
  #tellRevoked: Parameters<Credentials['onRevoked']>[0] = () => {};
  #claim: Awaited<ReturnType<LedgerStore['claim']>> | null = null;

  /** On a ledger with a master. */
  static async withMaster(options: ConstructorParameters<typeof FollowersRig>[0] = {}): Promise<FollowersRig> {
    const rig = new FollowersRig(options);
    await rig.commit(openLedger(), createMaster());
    return rig;
  }

  constructor({
    store: changed = (store) => store,
    logs = (proven) => proven,
    limiter = { delayMs: () => 0 },
    bounds = { total: 1_000, perActor: 1_000 },
    memory = new MemoryBudget(1e9),
  }: RigOptions = {}) {
    this.memory = memory;
    const { clock } = this;
    const now = () => clock.now();
    const log = createLog('silent');
    this.#written = new MemoryLedgerStore(now);
    this.store = changed(this.#written);
    this.heads = new LedgerHeads({
      ledgers: this.store,
      clock,
      log,
      remote: null,
      monotonicMs: now,
      learned: () => {},
    });
    this.parts = {
      ...{ ledgers: this.store, heads: this.heads, clock, log, random: countingBytes(), monotonicMs: now },
      logs: logs(provenLogsOver(this.#written, clock)),
      pages: new FollowedPages(1024 * 1024, { add: () => {}, release: () => {} }),
      reading: new LedgerReading(this.store, now),
      seals: async () => [],
      meter: this.#meter(),
      limiter,
      bounds,
      grantsMemory: new GrantsMemory(memory),
      ...{ heartbeatMs: 15_000, recordEveryMs: 60_000 },
    };
    this.followers = new Followers(this.parts);
    this.#endpoints = endpointsOf([
      { service: LedgerService, handlers: handlersOf(LedgerService, this.followers), names: {} },
      { service: MasterService, handlers: handlersOf(MasterService, this.followers), names: {} },
    ]);
    const history = (entry: AccessEntry): undefined => void this.#record(entry);
    const random = (length: number) => Buffer.from(countingBytes()(length));
    this.#pipeline = createPipeline({
      credentials: this.#credentials(),
      rates: createCallRates({ create: off, append: off, call: off }),
      walks: { places: new FairPlaces(manyPlaces, refused), memory: new MemoryBudget(1e9) },
      answers: createAnswerLog({ log, metrics: createMetrics(), history, monotonicMs: now, now }),
      records: new MemoryRecordStore(),
      secrets: createSecretBox(Buffer.alloc(32), random),
      ...{ now, monotonicMs: now, random },
    });
  }

  /** Writes the events of commands, and tells the node of them as a commit does. Returns the last one. */
  async commit(...commands: readonly Command[]): Promise<LedgerEvent> {
    const before = this.chain.events.length;
    for (const command of commands) this.chain.run(command, isoTime(this.clock.now()));
    const entries = chainEntries(this.chain.events).slice(before);
    this.#claim ??= await this.#written.claim(ledgerId);
    await this.#written.append(this.#claim, entries);
    this.heads.committed(ledgerId, entries);
    const [last] = this.chain.events.slice(-1);
    if (last === undefined) throw new Error('the commands wrote nothing');
    return last;
  }

  /** Revokes an API key on this node. */
  revokeKey(key: string): void {
    this.#revoked.add(key);
    this.#tellRevoked(key, keyRevoked());
  }

  followLedger(
    actorId: string,
    fields: Omit<MessageInitShape<typeof FollowLedgerEventsRequestSchema>, 'ledgerId'> = {},
    take?: () => Promise<void>,
  ): RigStream {
    const { followLedgerEvents: method } = LedgerService.method;
    return this.#open(method, actorId, create(method.input, { ...fields, ledgerId }), take);
  }

  followMaster(
    actorId: string,
    fields: Omit<MessageInitShape<typeof FollowMasterEventsRequestSchema>, 'uuid'> = {},
    take?: () => Promise<void>,
  ): RigStream {
    const { followMasterEvents: method } = MasterService.method;
    return this.#open(method, actorId, create(method.input, { ...fields, uuid: masterId }), take);
  }

  #open(
    method: Parameters<typeof rpcPathOf>[0],
    actorId: string,
    message: ReturnType<StreamCall['decode']>['message'],
    take: (() => Promise<void>) | undefined,
  ): RigStream {
    const endpoint = this.#endpoints.get(rpcPathOf(method));
    if (endpoint === undefined) throw new Error('no such method');
    const stream = new RigStream(actorId, message, take, () => this.#pipeline.running.hangUp(stream));
    stream.done = this.#pipeline.serverStream(endpoint, stream);
    return stream;
  }

  /** Runs until nothing more happens without the clock. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn += 1) await settled();
  }

  /** Lets time pass as a node sees it: its timers run in between. */
  async pass(ms: number): Promise<void> {
    const stepMs = 1_000;
    for (let passed = 0; passed < ms; passed += stepMs) {
      await this.clock.advance(Math.min(stepMs, ms - passed));
      await this.settle();
    }
  }

  async #record(entry: AccessEntry): Promise<void> {
    const records = await entry;
    this.records.push(...('requestId' in records ? [records] : records));
  }

  #meter(): FollowMeter {
    return {
      pageRead: (events) => {
        this.counts.pagesRead += 1;
        this.counts.eventsRead += events;
      },
      encoded: () => {},
      sent: () => {
        this.counts.sent += 1;
      },
      lag: (ms) => void this.lags.push(ms),
      ended: (reason) => void this.ended.push(reason),
      refused: () => {},
    };
  }

  #credentials(): Credentials {
    return {
      ...fakeCredentials(),
      byApiKey: (key) => {
        if (this.#revoked.has(key)) throw keyRevoked();
        return { actorId: key, world: 'sandbox', apiKeyId: key };
      },
      onRevoked: (tell) => {
        this.#tellRevoked = tell;
      },
    };
  }
}

/** One stream of a rig, as its transport holds it. */
export class RigStream implements StreamCall {
  readonly transport = 'grpc';
  readonly timeoutMs = Number.POSITIVE_INFINITY;
  readonly query = '';
  readonly received = Buffer.alloc(0);
  call: RunningCall | null = null;
  /** Resolves when the call has ended. */
  done: Promise<void> = Promise.resolve();
  readonly answers: FollowAnswer[] = [];
  error: LedgerError | null = null;
  hasEnded = false;
  readonly #key: string;
  readonly #message: ReturnType<StreamCall['decode']>['message'];
  readonly #take: () => Promise<void> | undefined;
  readonly leave: () => void;

  constructor(
    key: string,
    message: ReturnType<StreamCall['decode']>['message'],
    take: (() => Promise<void>) | undefined,
    leave: () => void,
  ) {
    this.#key = key;
    this.#message = message;
    this.#take = take ?? (() => undefined);
    this.leave = leave;
  }

  /** The seqs of events, and the names of other messages. */
  get shown(): (number | string)[] {
    return this.answers.map(({ message }) =>
      message?.case === 'event' ? Number(message.value.event?.seq) : String(message?.case),
    );
  }

  /** The seqs of all events of which the stream has told anything, heads included. */
  get toldSeqs(): number[] {
    return this.answers.map(({ message }) =>
      Number(message?.case === 'event' ? message.value.event?.seq : (message?.value?.head?.seq ?? -1)),
    );
  }

  /** The checkpoints of the heartbeats; null for those without one. */
  get checkpoints(): (string | null)[] {
    return this.answers
      .map(({ message }) => message)
      .filter((message) => message?.case === 'heartbeat')
      .map(({ value }) => value.checkpoint ?? null);
  }

  header(name: string): string | undefined {
    return name === 'authorization' ? `Bearer ${this.#key}` : undefined;
  }
  idempotencyKey(): undefined {}
  address(): string {
    return '127.0.0.1';
  }
  receive(): undefined {}
  signedRequest() {
    return { method: 'POST', path: '', bodyHash: '' };
  }
  decode() {
    return { message: this.#message, json: new Map() };
  }
  readable() {
    return this.#message;
  }
  equivalent() {
    return { verb: 'GET', path: `/v1/ledgers/${ledgerId}/events/follow` };
  }
  send(_call: RunningCall, answer: FollowAnswer): Promise<void> | undefined {
    this.answers.push(answer);
    return this.#take();
  }
  end(): void {
    this.hasEnded = true;
  }
  fail(_call: RunningCall, error: LedgerError): void {
    this.error = error;
    this.hasEnded = true;
  }
}

/** The methods that follow; no other one is called. */
function handlersOf(service: DescService, followers: Followers): Implementation['handlers'] {
  const unused = async () => ({});
  const handlers: Readonly<Record<string, unknown>> = {
    ...Object.fromEntries(service.methods.map(({ localName }) => [localName, unused])),
    followLedgerEvents: followLedgerEvents(followers),
    followMasterEvents: followMasterEvents(followers),
  };
  return handlers as Implementation['handlers'];
}

function keyRevoked(): LedgerError {
  return new LedgerError('invalid_api_key', 'revoked');
}

function refused(): LedgerError {
  return new LedgerError('overloaded', 'too many reads');
}
