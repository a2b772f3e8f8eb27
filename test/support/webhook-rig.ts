import { randomBytes } from 'node:crypto';
import type { Directory } from '../../src/actors/routing/directory.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import type { Command } from '../../src/domain/ledger/command.ts';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import type { Call } from '../../src/service/calls/call.ts';
import { LedgerReading } from '../../src/service/reading/ledger-reading.ts';
import { changeMutex } from '../../src/service/records/change-mutex.ts';
import { createSecretBox } from '../../src/service/records/secret-box.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import { webhookService } from '../../src/service/webhooks/webhooks.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import type { Post, PostResult } from '../../src/webhooks/post/http-post.ts';
import type { AttemptOutcome } from '../../src/webhooks/send/attempt.ts';
import { Webhooks } from '../../src/webhooks/webhooks.ts';
import { settled } from './clock.ts';
import { MemoryRecordStore } from './memory-store/record-store.ts';
import { type Rig, rig } from './world.ts';

/** A POST as the receiver would have seen it. */
interface SeenPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly raw: Buffer;
  /** Milliseconds since 1970, of the test's clock. */
  readonly atMs: number;
  readonly event: {
    readonly id: string;
    readonly ledger_id: string | null;
    readonly event_type: string;
    readonly seq: number | null;
  };
}

export type Receiver = (post: SeenPost, signal: AbortSignal) => PostResult | Promise<PostResult>;

export const answer = (status: number): PostResult => ({ kind: 'answered', status });
export const broken: PostResult = { kind: 'failed', fault: 'broken_off' };

/** A receiver that never answers. */
export const silent: Receiver = (_post, signal) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve({ kind: 'failed', fault: 'timeout' })));

/** A receiver that answers when the test calls the functions in `waiting`. */
export function heldReceiver(): { receiver: Receiver; waiting: (() => void)[] } {
  const waiting: (() => void)[] = [];
  const receiver: Receiver = () => new Promise((resolve) => waiting.push(() => resolve(answer(200))));
  return { receiver, waiting };
}

export interface WebhookRig {
  readonly rig: Rig;
  readonly clock: Rig['clock'];
  readonly records: RecordStore;
  readonly posts: SeenPost[];
  readonly outcomes: AttemptOutcome[];
  readonly logged: string[];
  readonly secretsKey: Buffer;
  /** By URL. All others answer 200. */
  readonly receivers: Map<string, Receiver>;
  readonly webhooks: Webhooks;
  readonly memory: MemoryBudget;
  readonly api: ReturnType<typeof webhookService>;
  readonly directory: Directory;
  call(actorId: string): Call;
  run(...commands: readonly Command[]): Promise<LedgerEvent[]>;
  /** The same, and then `quiet`. */
  runToEnd(...commands: readonly Command[]): Promise<LedgerEvent[]>;
  /** A subscription's id and secret. */
  subscribe(
    actorId: string,
    given?: { url?: string; eventTypes?: string[]; ledgerId?: string },
  ): Promise<{ id: string; secret: string }>;
  /** Has a PING sent. */
  ping(actorId: string, id: string): ReturnType<ReturnType<typeof webhookService>['testWebhook']>;
  unsubscribe(actorId: string, id: string): Promise<unknown>;
  deliveries(actorId: string, id: string): ReturnType<ReturnType<typeof webhookService>['listWebhookDeliveries']>;
  /** Waits until all that is left to do waits for the clock. */
  quiet(): Promise<void>;
  /** Moves the clock, and then `quiet`. */
  advance(ms: number): Promise<void>;
  /** Looks for due deliveries, and then `quiet`. */
  lookForDue(): Promise<void>;
  /** Acts like SIGKILL: no write of these webhooks lands any more, and nothing is sent. */
  kill(): void;
  /** Another process over the same data, which is not started yet. */
  restarted(options?: RestartOptions): WebhookRig;
  /** The same, started and quiet. */
  resumed(options?: RestartOptions): Promise<WebhookRig>;
}

type RestartOptions = Pick<
  WebhookRigOptions,
  'rig' | 'ledgers' | 'ownsShardOf' | 'tellOthers' | 'wrapLedgers' | 'wrapRecords' | 'subscriptionsMax'
>;

/** The types of the events that were sent, in order: all, or those to one URL. */
export function typesSent({ posts }: WebhookRig, to?: string): string[] {
  return posts.filter(({ url }) => to === undefined || url === to).map(({ event }) => event.event_type);
}

export interface WebhookRigOptions {
  readonly rig?: Rig;
  readonly records?: RecordStore;
  /** In place of the memory store of `rig`, whose actors have it already. */
  readonly ledgers?: LedgerStore;
  /** Change the stores that webhooks see. */
  readonly wrapLedgers?: (inner: LedgerStore) => LedgerStore;
  readonly wrapRecords?: (inner: RecordStore) => RecordStore;
  readonly memoryBytes?: number;
  readonly utilization?: () => number;
  readonly monotonicMs?: () => number;
  readonly secretsKey?: Buffer;
  readonly production?: boolean;
  readonly ownsShardOf?: (id: string) => boolean;
  readonly tellOthers?: (subscriptionId: string) => void;
  readonly subscriptionsMax?: number;
  /** false: the test starts the webhooks. */
  readonly started?: boolean;
}

/** Webhooks over memory stores and made-up receivers, under a clock that the test moves. */
export function webhookRig(options: WebhookRigOptions = {}): WebhookRig {
  const base = options.rig ?? rig();
  const { clock } = base;
  const ledgers = options.ledgers ?? base.memory;
  const records = options.records ?? new MemoryRecordStore();
  let alive = true;
  const seenRecords = whileAlive(options.wrapRecords?.(records) ?? records, () => alive);
  const seenLedgers = whileAlive<LedgerStore>(options.wrapLedgers?.(ledgers) ?? ledgers, () => alive);
  const posts: SeenPost[] = [];
  const outcomes: AttemptOutcome[] = [];
  const logged: string[] = [];
  const receivers = new Map<string, Receiver>();
  const secretsKey = options.secretsKey ?? randomBytes(32);
  const secrets = createSecretBox(secretsKey, randomBytes);
  const reading = new LedgerReading(ledgers, () => clock.now());
  const memory = new MemoryBudget(options.memoryBytes ?? 1024 * 1024 * 1024);
  const webhooks = new Webhooks({
    ledgers: seenLedgers,
    records: seenRecords,
    reading,
    memory,
    secrets,
    clock,
    log: createLog('info', { write: (line) => void logged.push(line) }),
    meter: { fannedOut: () => {}, attempted: (outcome) => void outcomes.push(outcome) },
    ownsShardOf: options.ownsShardOf ?? (() => true),
    readBarrier: (ledgerId) => directory.readBarrier(ledgerId),
    tellOthers: options.tellOthers ?? null,
    subscriptionsMax: options.subscriptionsMax ?? 16_384,
    utilization: options.utilization ?? (() => 0),
    monotonicMs: options.monotonicMs ?? (() => clock.now()),
    processorMs: () => clock.now(),
    poster: {
      post: async ({ url, headers, body, signal }: Post) => {
        if (!alive) return new Promise(() => {});
        const raw = Buffer.from(body);
        const { event } = JSON.parse(raw.toString()) as { event: SeenPost['event'] };
        const post = { url, headers, raw, atMs: clock.now(), event };
        posts.push(post);
        return (receivers.get(url) ?? (() => answer(200)))(post, signal);
      },
      [Symbol.asyncDispose]: async () => {},
    },
  });
  if (options.started !== false) webhooks.start();
  const directory = base.directory({ commitListener: webhooks });
  const policy = { production: options.production ?? false, ownPorts: () => new Set([8080]), ownAddresses: () => [] };
  const api = webhookService(records, ledgers, reading, secrets, policy, webhooks, changeMutex());

  const call = (actorId: string): Call => ({
    requestId: 'r',
    address: '127.0.0.1',
    caller: { actorId, world: 'sandbox', via: 'api_key', apiKeyId: 'k', actorType: 'service', mustSign: false },
    signature: null,
    deliveryChain: null,
    commandKey: null,
    now: clock.now(),
    newId: () => uuidV7(clock.now(), randomBytes(10)),
    randomBytes,
    signal: new AbortController().signal,
    walk: unboundedWalk(),
    partWalk: (read) => read(unboundedWalk()),
    aborted: false,
    ending: null,
    isStalled: false,
    onAbort: null,
    admitEvent: () => null,
    eventRefused: () => {},
    eventFailed: () => {},
    recordAccess: () => {},
    recordNamed: () => undefined,
    endWith: () => {},
    deadline: Number.MAX_SAFE_INTEGER,
    markReplayed: () => {},
    markVerified: () => {},
    takeJson: () => null,
    setHeader: () => {},
    named: () => {},
  });

  const quiet = async () => {
    for (let calm = 0, seen = -1; calm < 3; ) {
      for (let time = 0; time < 25; time++) await settled();
      calm = posts.length === seen ? calm + 1 : 0;
      seen = posts.length;
    }
  };

  const run = async (...commands: readonly Command[]) => {
    const events: LedgerEvent[] = [];
    for (const command of commands) events.push((await directory.submit(command)).event);
    return events;
  };
  const restarted = (more: RestartOptions = {}) =>
    webhookRig({ rig: base, records, secretsKey, started: false, ...more });

  return {
    rig: base,
    clock,
    records,
    posts,
    outcomes,
    logged,
    secretsKey,
    receivers,
    webhooks,
    memory,
    api,
    directory,
    call,
    quiet,
    run,
    runToEnd: async (...commands) => {
      const events = await run(...commands);
      await quiet();
      return events;
    },
    subscribe: async (actorId, { url = 'https://hooks.example/a', eventTypes = [], ledgerId } = {}) => {
      const request = { $typeName: 'svc.v1.CreateWebhookRequest', url, eventTypes } as const;
      return api.createWebhook(ledgerId === undefined ? request : { ...request, ledgerId }, call(actorId));
    },
    ping: (actorId, id) => api.testWebhook({ $typeName: 'svc.v1.TestWebhookRequest', id }, call(actorId)),
    unsubscribe: (actorId, id) => api.deleteWebhook({ $typeName: 'svc.v1.DeleteWebhookRequest', id }, call(actorId)),
    deliveries: (actorId, id) =>
      api.listWebhookDeliveries({ $typeName: 'svc.v1.ListWebhookDeliveriesRequest', id, limit: 1_000 }, call(actorId)),
    advance: async (ms) => {
      await clock.advance(ms);
      await quiet();
    },
    lookForDue: () => {
      webhooks.lookForDue();
      return quiet();
    },
    kill: () => {
      alive = false;
    },
    restarted,
    resumed: async (more) => {
      const next = restarted(more);
      next.webhooks.start();
      await next.quiet();
      return next;
    },
  };
}

/** The same object. After its death its methods never resolve. */
function whileAlive<T extends object>(inner: T, isAlive: () => boolean): T {
  return new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => (isAlive() ? member.apply(target, given) : new Promise(() => {}));
    },
  });
}
