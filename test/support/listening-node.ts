import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import { clientAddressBehind } from '../../src/rpc/call/client-address.ts';
import { endpointsOf, rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import type { AnyHandler, Implementation } from '../../src/rpc/endpoints/handlers.ts';
import { apiServices } from '../../src/rpc/endpoints/routes.ts';
import { type GrpcListener, openGrpcListener } from '../../src/rpc/grpc/main/listener.ts';
import { corsFor } from '../../src/rpc/http/cors.ts';
import type { TlsKeys } from '../../src/rpc/http/server.ts';
import { type HttpPortParts, openHttpListener } from '../../src/rpc/http-listener.ts';
import type { Listener } from '../../src/rpc/listening.ts';
import { createAnswerLog } from '../../src/rpc/pipeline/answer-log.ts';
import { type CallRateSizes, createCallRates } from '../../src/rpc/pipeline/call-rates.ts';
import { createPipeline, type Pipeline } from '../../src/rpc/pipeline/pipeline.ts';
import { FairPlaces, type PlaceBounds } from '../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../src/runtime/telemetry/metrics.ts';
import type { AccessEntry, AccessHistory } from '../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../src/service/audit/access-record.ts';
import type { Call, EntityRequest } from '../../src/service/calls/call.ts';
import type { Credentials } from '../../src/service/developers/credentials.ts';
import { createSecretBox } from '../../src/service/records/secret-box.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';

export const actorId = '0199aaaa-0000-7000-8000-000000000001';
export const otherActorId = '0199aaaa-0000-7000-8000-000000000002';
export const keyedEntityId = '0199bbbb-0000-7000-8000-000000000001';
export const bareEntityId = '0199bbbb-0000-7000-8000-000000000002';
export const thirdEntityId = '0199bbbb-0000-7000-8000-000000000003';
export const masterId = '0199cccc-0000-7000-8000-000000000001';
export const ledgerId = '0199dddd-0000-7000-8000-000000000001';
/** The fake's keys; a real one has another form, which is the credentials' affair. */
export const goodKey = 'svc_sk_test_good';
export const otherKey = 'svc_sk_test_other';
export const bearer = { authorization: `Bearer ${goodKey}` };

/** Handlers by `Service.Method`, such as `MasterService.AppendEvent`; the rest answers `unavailable`. */
type FakeHandlers = { readonly [name: string]: FakeHandler };
/** Takes the request as the test declares it. */
export type FakeHandler = (request: never, call: Call) => Promise<object> | AsyncIterable<object>;

/** Credentials of a made-up world: two API keys that can be revoked, one entity with a key and one without. */
export function fakeCredentials(): Credentials & { revoked: Set<string>; verified: EntityRequest[] } {
  const owners: Readonly<Record<string, string>> = { [goodKey]: actorId, [otherKey]: otherActorId };
  const revoked = new Set<string>();
  const verified: EntityRequest[] = [];
  return {
    revoked,
    verified,
    byApiKey(key) {
      const owner = owners[key];
      if (owner === undefined || revoked.has(key))
        throw new LedgerError('invalid_api_key', 'This API key is not valid.');
      return { actorId: owner, world: 'sandbox', apiKeyId: `id-of-${key}` };
    },
    async byEntityHeaders(id, actorType) {
      if (![keyedEntityId, bareEntityId, thirdEntityId].includes(id) || actorType !== 'device') {
        throw new LedgerError('invalid_actor_identity', 'There is no such entity.');
      }
      return { actorId: id, world: null, actorType, mustSign: id === keyedEntityId };
    },
    async verifyEntityRequest(_id, { signature }, request) {
      if (signature !== 'good-signature') throw new LedgerError('invalid_signature', 'The signature does not verify.');
      verified.push(request);
    },
    onRevoked: () => {},
  };
}

export interface ListeningNodeOptions {
  /** Whether the gRPC port is opened, whose thread takes half a second to load; it is if not given. */
  readonly grpc?: boolean;
  readonly handlers: FakeHandlers;
  readonly rates?: Partial<CallRateSizes>;
  readonly corsOrigins?: readonly string[];
  readonly trustedProxies?: readonly string[];
  readonly tls?: TlsKeys;
  /** Of each port; many if not given. */
  readonly connectionsMax?: number;
  /** Of 256 MiB if not given. */
  readonly memory?: MemoryBudget;
  readonly records?: RecordStore;
  /** The node's memory budget, in bytes; that of a large machine if not given. */
  readonly memoryBytes?: number;
  /** 32 bytes; nodes of one store share it. */
  readonly secretsKey?: Buffer;
  /** Milliseconds since 1970; the real time if not given. */
  readonly now?: () => number;
  /** Whether the node's clock may decide; it always may if not given. */
  readonly isClockRight?: () => boolean;
  /** Milliseconds of a clock that never goes back; performance.now if not given. */
  readonly monotonicMs?: () => number;
  /** Places of long reads; many if not given. */
  readonly reads?: PlaceBounds;
  /** Takes the access records in place of `accesses`; null: none are made. */
  readonly history?: AccessHistory | null;
  /** None if not given. */
  readonly pages?: NonNullable<HttpPortParts['pages']>;
  /** What methods name otherwise than by a `ledger_id`, by service and by method in camelCase; nothing if not given. */
  readonly names?: Readonly<Record<string, object>>;
}

/** Both public ports, or the HTTP one alone, with the real pipeline over made-up handlers and credentials. */
export interface ListeningNode extends AsyncDisposable {
  readonly http: Listener;
  /** Throws where it was not opened. */
  readonly grpc: GrpcListener;
  readonly base: string;
  readonly grpcAddress: string;
  readonly credentials: ReturnType<typeof fakeCredentials>;
  readonly records: RecordStore;
  readonly pipeline: Pipeline;
  readonly metrics: Metrics;
  readonly memory: MemoryBudget;
  readonly accesses: AccessRecord[];
  /** What was logged, a line each. */
  readonly lines: string[];
}

const off = { perSecond: 0, burst: 0 };
const manyPlaces = { perCaller: 1_000, total: 1_000, waiting: 1_000 };
const tooMany = () => new LedgerError('overloaded', 'Too many reads wait.');

export async function startListeningNode(options: ListeningNodeOptions): Promise<ListeningNode> {
  const memory = options.memory ?? new MemoryBudget(options.memoryBytes ?? 256 * 1024 * 1024);
  const credentials = fakeCredentials();
  const records = options.records ?? new MemoryRecordStore();
  const metrics = createMetrics();
  const lines: string[] = [];
  const accesses: AccessRecord[] = [];
  const now = options.now ?? Date.now;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const gather = async (entry: AccessEntry) => void accesses.push(...[await entry].flat());
  const history = options.history === undefined ? gather : options.history;
  const answers = createAnswerLog({ log, metrics, history, monotonicMs, now });
  const pipeline = createPipeline({
    credentials,
    records,
    secrets: createSecretBox(options.secretsKey ?? randomBytes(32), randomBytes),
    rates: createCallRates({ create: off, append: off, call: off, ...options.rates }),
    walks: { places: new FairPlaces(options.reads ?? manyPlaces, tooMany), memory },
    answers,
    random: randomBytes,
    now,
    monotonicMs,
    ...(options.isClockRight === undefined ? {} : { isClockRight: options.isClockRight }),
  });
  const endpoints = endpointsOf(fakeApi(options.handlers, options.names ?? {}));
  const clientAddress = clientAddressBehind(options.trustedProxies ?? []);
  const tls = options.tls ?? null;
  const newId = () => uuidV7(now(), randomBytes(10));
  const cors = corsFor(options.corsOrigins ?? []);
  const { pages = new Map() } = options;
  const tlsOnly = tls !== null;
  const { connectionsMax = 20_000 } = options;
  const httpParts = {
    endpoints,
    pipeline,
    answers,
    cors,
    clientAddress,
    newId,
    tls,
    tlsOnly,
    connectionsMax,
    memory,
    monotonicMs,
    pages,
  };
  const http = await openHttpListener(httpParts, '127.0.0.1', 0);
  const bounds = { connectionRequestBytes: 8 * 1024 * 1024, connectionAnswerBytes: 32 * 1024 * 1024 };
  const grpcParts = { endpoints, pipeline, answers, clientAddress, newId, tls, bounds, connectionsMax, memory, now };
  const opened = options.grpc === false ? null : await openGrpcListener(grpcParts, '127.0.0.1', 0);
  const grpcOf = (): GrpcListener => {
    if (opened === null) throw new Error('this node was started without its gRPC port');
    return opened;
  };
  return {
    http,
    get grpc() {
      return grpcOf();
    },
    base: `${tls === null ? 'http' : 'https'}://127.0.0.1:${http.port}`,
    get grpcAddress() {
      return `127.0.0.1:${grpcOf().port}`;
    },
    credentials,
    records,
    pipeline,
    metrics,
    memory,
    accesses,
    lines,
    async [Symbol.asyncDispose]() {
      await Promise.all([http.close(0), opened?.close(0)]);
      pipeline.running[Symbol.dispose]();
    },
  };
}

/** Called at the head of a test file; the node ends with the file's tests. */
export async function listeningNodeForTests(options: ListeningNodeOptions): Promise<ListeningNode> {
  const node = await startListeningNode(options);
  afterAll(() => node[Symbol.asyncDispose]());
  return node;
}

/** The whole API, of which only the given methods do anything. */
function fakeApi(handlers: FakeHandlers, names: Readonly<Record<string, object>>): Implementation[] {
  const unused = new Set(Object.keys(handlers));
  const api = apiServices.map((service): Implementation => {
    const entries = service.methods.map((method): [string, AnyHandler] => {
      const name = rpcPathOf(method).slice('/svc.v1.'.length).replace('/', '.');
      unused.delete(name);
      return [method.localName, (handlers[name] ?? notGiven) as unknown as AnyHandler];
    });
    return {
      service,
      handlers: Object.fromEntries(entries),
      names: (names[service.name] ?? {}) as Implementation['names'],
    };
  });
  if (unused.size > 0) throw new Error(`No such methods: ${[...unused].join(', ')}`);
  return api;
}

const notGiven = (): never => {
  throw new LedgerError('unavailable', 'The test gave this method no handler.');
};
