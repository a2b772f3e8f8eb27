import { createPublicKey, sign, verify } from 'node:crypto';
import { BatchWindow } from '../../src/actors/batching/batch-window.ts';
import { batchLimits } from '../../src/actors/bounds.ts';
import { DeadlineWatch } from '../../src/actors/inbox/deadline-watch.ts';
import { LedgerActor, type LedgerActorParts } from '../../src/actors/ledger/ledger-actor.ts';
import { SaveQueue } from '../../src/actors/ledger/save-queue.ts';
import type { ActorKeys, KeyLife, SigningKeys } from '../../src/actors/ledger/signing-keys.ts';
import type { ActorMeter, DoubtfulBatch } from '../../src/actors/meter.ts';
import { Directory, type DirectoryParts } from '../../src/actors/routing/directory.ts';
import { noPeers } from '../../src/actors/routing/peers.ts';
import { localPlacement } from '../../src/actors/routing/placement.ts';
import { type ErrorCode, LedgerError } from '../../src/domain/errors.ts';
import { authorityDigest } from '../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { checkChain } from '../../src/domain/event/integrity.ts';
import { parseRow } from '../../src/domain/event/row.ts';
import { type Command, commandMaster } from '../../src/domain/ledger/command.ts';
import { decide } from '../../src/domain/ledger/decide.ts';
import { applyToLedger, emptyLedger, type LedgerState } from '../../src/domain/ledger/ledger-state.ts';
import { applyToMaster, type MasterState, nextMasterLink } from '../../src/domain/ledger/master-state.ts';
import { type AuthoritySigner, sealEvent } from '../../src/domain/ledger/seal.ts';
import { isoTime } from '../../src/domain/values/time.ts';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { RecordStore } from '../../src/store/record-store.ts';
import { ManualClock } from './clock.ts';
import { createMaster, ledgerId, openLedger } from './commands.ts';
import { checkDecisions } from './decided-events.ts';
import { privateKeyOf } from './log-keys.ts';
import { emptyLedgerData, type MemoryLedgerData } from './memory-store/ledger-data.ts';
import { MemoryLedgerStore } from './memory-store/ledger-store.ts';
import { faultyLedgerStore } from './store-faults.ts';

/** When tests begin. */
export const startMs = Date.parse('2026-11-21T02:06:39.100Z');
export const start = isoTime(startMs);

/** A signer with the key of a seed. */
export function authorityOf(seedHex: string): AuthoritySigner {
  const key = privateKeyOf(seedHex);
  return { keyId: 'svc:authority#key-1', sign: (digest) => sign(null, digest, key).toString('base64') };
}

const authoritySeed = '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb';
export const authority = authorityOf(authoritySeed);
export const authorityPublicKey = createPublicKey(privateKeyOf(authoritySeed));

/** Whether an event carries a seal of `authority` over its hash. */
export function isSealed(event: LedgerEvent): boolean {
  if (event.authoritySig === null) return false;
  return verify(null, authorityDigest(event.hash), authorityPublicKey, Buffer.from(event.authoritySig, 'base64'));
}

const shared = { drawn: 0 };

/** Bytes that are never the same twice in a test run, or with a counter of the test's own: the same in each process. */
export function countingBytes(counter = shared): (length: number) => Uint8Array {
  return (length) => {
    const bytes = Buffer.alloc(8 + length);
    bytes.writeUIntBE(++counter.drawn, length + 2, 6);
    return bytes.subarray(8);
  };
}

/** A ledger without actor and store: commands are decided, sealed and folded one by one. */
export class Chain {
  ledger: LedgerState = emptyLedger;
  readonly masters = new Map<string, MasterState>();
  readonly events: LedgerEvent[] = [];
  readonly #random: (length: number) => Uint8Array;

  constructor(random = countingBytes()) {
    this.#random = random;
  }

  /** The events that a command made; throws the LedgerError that it is refused with, and then changes nothing. */
  run(command: Command, at: string = start): LedgerEvent[] {
    const masterId = commandMaster(command);
    const master = masterId === null ? null : (this.masters.get(masterId) ?? null);
    return decide(this.ledger, master, command, at).map((draft) => {
      const before = draft.masterId === null ? null : (this.masters.get(draft.masterId) ?? null);
      const place = {
        id: uuidV7(Date.parse(at), this.#random(10)),
        ledgerId: command.ledgerId,
        seq: this.ledger.seq + 1,
        prevHash: this.ledger.hash,
        createdAt: at,
        master: draft.masterId === null ? null : nextMasterLink(before, draft.masterId),
      };
      const { event } = sealEvent(draft, place, authority);
      this.ledger = applyToLedger(this.ledger, event);
      if (draft.masterId !== null) this.masters.set(draft.masterId, applyToMaster(before, event));
      this.events.push(event);
      return event;
    });
  }

  /** The code that a command is refused with; null if it is carried out. */
  refusal(command: Command, at: string = start): ErrorCode | null {
    try {
      this.run(command, at);
      return null;
    } catch (error) {
      if (error instanceof LedgerError) return error.code;
      throw error;
    }
  }
}

/** A chain of which these commands were carried out. */
export function chainOf(...commands: readonly Command[]): Chain {
  const chain = new Chain();
  for (const command of commands) chain.run(command);
  return chain;
}

/** The one of something that has to be there. */
export function only<T>(items: readonly T[]): T {
  const [item, ...others] = items;
  if (item === undefined || others.length > 0) throw new Error(`there are ${items.length} and not one`);
  return item;
}

/** Keys that a test sets; what is `cached` is answered from memory. */
class TestKeys implements SigningKeys {
  readonly stored = new Map<string, ActorKeys>();
  readonly cached = new Map<string, ActorKeys>();
  /** Called while a record is read. */
  onRead: () => void | Promise<void> = () => {};
  reads = 0;

  fresh(actorId: string): ActorKeys | undefined {
    return this.cached.get(actorId);
  }

  async read(actorId: string): Promise<ActorKeys> {
    this.reads++;
    const keys = this.stored.get(actorId) ?? new Map();
    await this.onRead();
    return keys;
  }

  withEnds(_actorId: string, keys: ActorKeys): ActorKeys {
    return keys;
  }

  /** One key of an actor, in its record. */
  enrol(actorId: string, kid: string, life: Partial<KeyLife> = {}): void {
    const key = { validFrom: '2020-01-01T00:00:00.000Z', revokedAt: null, ...life };
    this.stored.set(actorId, new Map([...(this.stored.get(actorId) ?? []), [kid, key]]));
  }
}

/** Counts what actors tell. */
class TestMeter implements ActorMeter {
  readonly batches: number[] = [];
  readonly claims: string[] = [];
  readonly answers: string[] = [];
  readonly unknown: string[] = [];
  fencings = 0;

  committed(events: number): void {
    this.batches.push(events);
  }
  answered(result: string): void {
    this.answers.push(result);
  }
  claimed(reason: string): void {
    this.claims.push(reason);
  }
  fenced(): void {
    this.fencings++;
  }
  damages = 0;
  damaged(): void {
    this.damages++;
  }
  readonly doubts: DoubtfulBatch[] = [];
  unknownOutcome(resolution: string, batch: DoubtfulBatch): void {
    this.unknown.push(resolution);
    this.doubts.push(batch);
  }
  activated(): void {}
}

/** A memory store some of whose methods a test replaces. */
export function storeWith(inner: LedgerStore, replaced: Partial<LedgerStore>): LedgerStore {
  return { ...faultyLedgerStore(inner, () => null), ...replaced };
}

type Hooks<S> = { [M in keyof S]?: S[M] extends (...args: infer A) => unknown ? (...args: A) => unknown : never };

/** The same store, whose methods first call and await these functions. */
export function beforeCalls<S extends LedgerStore | RecordStore>(inner: S, hooks: Hooks<S>): S {
  return new Proxy(inner, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      const hook: unknown = Reflect.get(hooks, name);
      if (typeof method !== 'function') return method;
      if (typeof hook !== 'function') return method.bind(target);
      return async (...args: unknown[]) => {
        await hook(...args);
        return method.apply(target, args);
      };
    },
  });
}

/** A record store with some methods in place of its own. */
export function recordsWith(inner: RecordStore, replaced: Partial<RecordStore>): RecordStore {
  return {
    get: (kind, id) => inner.get(kind, id),
    find: (kind, lookup, page) => inner.find(kind, lookup, page),
    put: (write) => inner.put(write),
    remove: (kind, id, version) => inner.remove(kind, id, version),
    sweep: (now, limit) => inner.sweep(now, limit),
    ...replaced,
  };
}

export interface Rig {
  readonly clock: ManualClock;
  readonly data: MemoryLedgerData;
  readonly memory: MemoryLedgerStore;
  readonly keys: TestKeys;
  readonly meter: TestMeter;
  readonly parts: LedgerActorParts;
  newActor(given?: Partial<LedgerActorParts>): LedgerActor;
  directory(parts?: Partial<DirectoryParts>): Directory;
  /** What the store holds of the ledger. */
  log(): Promise<LedgerEvent[]>;
}

/** What the actors of one node share. */
function nodeParts(clock: ManualClock): Pick<LedgerActorParts, 'batches' | 'deadlines' | 'saves'> {
  return {
    batches: new BatchWindow(clock, { ...batchLimits.commitsApart, maxDelayMs: 0 }),
    deadlines: new DeadlineWatch(clock),
    saves: new SaveQueue(clock),
  };
}

/**
 * What actors need, over a memory store; `wrap` puts something between them. Several rigs over one `data` are several
 * nodes.
 */
export function rig(
  options: {
    readonly clock?: ManualClock;
    readonly data?: MemoryLedgerData;
    readonly keys?: TestKeys;
    readonly wrap?: (memory: MemoryLedgerStore) => LedgerStore;
  } = {},
): Rig {
  const clock = options.clock ?? new ManualClock(startMs);
  const data = options.data ?? emptyLedgerData();
  const memory = new MemoryLedgerStore(() => clock.now(), data);
  const keys = options.keys ?? new TestKeys();
  const meter = new TestMeter();
  const store = options.wrap?.(memory) ?? memory;
  const parts = {
    store,
    keys,
    authority: () => authority,
    clock,
    random: countingBytes(),
    meter,
    ...nodeParts(clock),
  };
  return {
    clock,
    data,
    memory,
    keys,
    meter,
    parts,
    newActor: (given = {}) => new LedgerActor(ledgerId, { ...parts, ...nodeParts(clock), ...given }),
    directory: (given = {}) =>
      new Directory({
        ...parts,
        ...nodeParts(clock),
        self: 'node-a',
        shardCount: 16,
        placement: localPlacement('node-a'),
        peers: noPeers,
        ...given,
      }),
    log: async () => {
      const events: LedgerEvent[] = [];
      for (;;) {
        const page = await memory.read(ledgerId, events.length, 1_000);
        if (page.length === 0) return events;
        for (const entry of page) events.push(parseRow(entry.row));
      }
    },
  };
}

/** What is wrong with a whole ledger's events. */
export function faultsOf(events: readonly LedgerEvent[]): string[] {
  const ofMasters = Map.groupBy(
    events.filter(({ master }) => master !== null),
    ({ master }) => master?.id,
  );
  const issues = [
    ...checkChain(events, { kind: 'ledger', before: null }),
    ...[...ofMasters.values()].flatMap((own) => checkChain(own, { kind: 'master', before: null })),
  ].map(({ type, detail }) => `${type}: ${detail}`);
  const undated = events.filter(({ createdAt }) => isoTime(Date.parse(createdAt)) !== createdAt);
  const unsealed = events.filter((event) => event.actorSig === null && !isSealed(event));
  const undecided = checkDecisions(events).map(({ seq, type, detail }) => `seq ${seq}: ${type}: ${detail}`);
  return [
    ...issues,
    ...undecided,
    ...unsealed.map(({ seq }) => `seq ${seq} has no seal`),
    ...undated.map(({ seq }) => `seq ${seq} has no time in UTC`),
  ];
}

/** The codes of commands that are submitted at once, in their order. */
export function codesOf(to: Pick<LedgerActor, 'submit'>, ...commands: readonly Command[]): Promise<string[]> {
  return Promise.all(commands.map((command) => codeOf(to.submit(command))));
}

/** Opens the ledger, with a master. */
export async function openOrder(actor: Pick<LedgerActor, 'submit'>): Promise<void> {
  await Promise.all([actor.submit(openLedger()), actor.submit(createMaster())]);
}

/** The code of a refusal, or what was carried out instead. */
export async function codeOf(outcome: Promise<unknown>): Promise<string> {
  try {
    await outcome;
    return 'carried out';
  } catch (error) {
    if (error instanceof LedgerError) return error.code;
    throw error;
  }
}
