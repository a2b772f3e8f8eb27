import { Leases } from '../../cluster/placement/leases.ts';
import { type PlacementMeter, Rebalancing } from '../../cluster/placement/rebalancing.ts';
import type { PlacementTimings } from '../../cluster/placement/timings.ts';
import { BatchWindow } from '../../src/actors/batching/batch-window.ts';
import { batchLimits } from '../../src/actors/bounds.ts';
import { DeadlineWatch } from '../../src/actors/inbox/deadline-watch.ts';
import { SaveQueue } from '../../src/actors/ledger/save-queue.ts';
import type { SigningKeys } from '../../src/actors/ledger/signing-keys.ts';
import type { ActorMeter } from '../../src/actors/meter.ts';
import { Directory } from '../../src/actors/routing/directory.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../src/actors/routing/peers.ts';
import type { NodeId, Placement } from '../../src/actors/routing/placement.ts';
import type { AuthoritySigner } from '../../src/domain/ledger/seal.ts';
import type { Checkpoints } from '../../src/service/proofs/checkpoints.ts';
import { CassandraLedgerStore } from '../../src/store/cassandra/log/ledger-store.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { PlantedBug } from './bugs.ts';
import { simulatedSession } from './cassandra.ts';
import { Life } from './life.ts';
import { type DamagedRows, fedBy, type LogsOfRun, simulatedCheckpoints } from './proofs.ts';
import type { SeededRandom } from './random.ts';
import type { SimulatedRedis } from './redis.ts';
import type { SimulatedTables } from './tables.ts';
import type { SimulatedTime } from './time.ts';
import { healthyWire, request, type WireState } from './wire.ts';

/** What all nodes of a run share. */
export interface World {
  readonly time: SimulatedTime;
  readonly random: SeededRandom;
  readonly tables: SimulatedTables;
  readonly redis: SimulatedRedis;
  readonly nodes: Map<NodeId, SimulatedNode>;
  readonly bug: PlantedBug | null;
  readonly bucketEvents: number;
  readonly counts: Counts;
  readonly logs: LogsOfRun;
  /** Whether clients ask for checkpoints, and what only checkpoints notice is broken. */
  readonly hasCheckpoints: boolean;
  /** All nodes are stopped while tables are restored. */
  isStopped: boolean;
}

/** What happened in a run, to be sure that it was no quiet one. */
export interface Counts {
  claims: number;
  fenced: number;
  unknown: number;
  replayed: number;
  forwarded: number;
  notOwner: number;
  unreachable: number;
  moved: number;
  /** Checkpoints that clients were given, and requests for one that were refused. */
  notes: number;
  notesRefused: number;
  /** Full tiles of leaves that were made. */
  tiles: number;
  restores: number;
}

const shardCount = 8;
const timings: PlacementTimings = {
  leaseTtlMs: 900,
  renewEveryMs: 300,
  marginMs: 100,
  heirMs: 400,
  heartbeatEveryMs: 250,
  memberTtlMs: 800,
  lookEveryMs: 200,
  quietMs: 300,
  handOversMax: 3,
};
const timeoutsMs = { plain: 60, conditional: 150, redis: 50, peers: 300 };
/**
 * Cassandra keeps a plain write for a replica that was away: its sender has long since gone on, and others have, too.
 */
const lateWriteMaxMs = 2_000;

/** A quick stand-in for the authority's key: seals are not what is simulated. */
const authority: AuthoritySigner = {
  keyId: 'svc:authority#key-1',
  sign: (digest) => Buffer.from(digest).toString('base64'),
};
const noKeys: SigningKeys = { fresh: () => new Map(), read: async () => new Map(), withEnds: (_actorId, keys) => keys };

/** A node as it is when it has no fault: the real actors, store adapter and placement, over simulated wires. */
export class SimulatedNode {
  readonly id: NodeId;
  readonly #world: World;
  readonly wires = { reads: healthyWire(), writes: healthyWire(), conditional: healthyWire(), redis: healthyWire() };
  /** Wires to other nodes. */
  readonly peers = new Map<NodeId, WireState>();
  life: Life;
  directory: Directory;
  store: LedgerStore;
  checkpoints: Checkpoints;
  /** The rows that the node reads damaged when it makes trees. */
  damaged: DamagedRows | null = null;
  /** If set, the node believes that it owns every shard. Called when it acts on that. */
  believesAll: (() => void) | null = null;

  constructor(id: NodeId, world: World) {
    this.id = id;
    this.#world = world;
    this.life = new Life(world.time);
    [this.store, this.checkpoints, this.directory] = this.#start();
  }

  crash(): void {
    this.life.end();
  }

  restart(): void {
    this.life = new Life(this.#world.time);
    this.believesAll = null;
    [this.store, this.checkpoints, this.directory] = this.#start();
  }

  #start(): [LedgerStore, Checkpoints, Directory] {
    const { time, random, tables, redis, bug, bucketEvents, counts, logs } = this.#world;
    const life = this.life;
    const { clock } = life;
    const wire = (state: WireState, timeoutMs: number) => ({ time, random, state, life, timeoutMs });
    const session = simulatedSession(
      tables,
      {
        reads: wire(this.wires.reads, timeoutsMs.plain),
        writes: { ...wire(this.wires.writes, timeoutsMs.plain), lateMaxMs: lateWriteMaxMs },
        conditional: wire(this.wires.conditional, timeoutsMs.conditional),
      },
      bug,
    );
    const bytes = (length: number) => random.bytes(length);
    const cassandra = new CassandraLedgerStore({ session, now: () => clock.now(), random: bytes, bucketEvents });
    const store = bug === 'stale_refusal' ? neverAsking(cassandra) : cassandra;
    const parts = { store, session, clock, logs, counts, bug, damaged: () => this.damaged };
    const checkpoints = simulatedCheckpoints(parts);
    const server = redis.client(wire(this.wires.redis, timeoutsMs.redis));
    const monotonicMs = () => time.now;
    const leases = new Leases({ self: this.id, server, timings, monotonicMs, random: bytes });
    const placement: Placement = {
      locate: async (shard) => {
        if (this.believesAll === null) return leases.locate(shard);
        this.believesAll();
        return this.id;
      },
    };
    const directory = new Directory({
      ...fedBy(bug, checkpoints, store),
      keys: noKeys,
      authority: () => authority,
      clock,
      random: bytes,
      meter: actorMeter(counts),
      batches: new BatchWindow(clock, batchLimits.commitsApart),
      deadlines: new DeadlineWatch(clock),
      saves: new SaveQueue(clock),
      self: this.id,
      shardCount,
      placement,
      peers: this.#peers(life),
      activationsPerSecond: 200,
    });
    const rebalancing = new Rebalancing({
      self: { id: this.id, address: this.id, startedAt: String(time.now) },
      board: server,
      server,
      leases,
      shardCount,
      timings,
      clock,
      monotonicMs,
      meter: placementMeter(counts),
      leave: (shard, release) => directory.leave(shard, release),
      hasStore: () => true,
      isClockRight: () => true,
      clockAheadMs: () => 0,
      failed: () => {},
      alarmed: () => {},
    });
    rebalancing.start();
    return [store, checkpoints, directory];
  }

  #peers(life: Life): Peers {
    const { time, random, nodes, bug, counts } = this.#world;
    return {
      ask: async (to, command) => {
        counts.forwarded++;
        const target = nodes.get(to);
        if (target === undefined || target.life.isOver) {
          counts.unreachable++;
          throw new PeerUnreachable(new Error('connection refused'), false);
        }
        const there = target.life;
        const state = this.peers.get(to) ?? healthyWire();
        const sent = bug === 'resubmitted_without_id' ? { ...command, commandKeys: [] } : command;
        const work = () =>
          new Promise<Awaited<ReturnType<Directory['carryOut']>>>((resolve, reject) =>
            there.deliver(() => target.directory.carryOut(sent).then(resolve, reject)),
          );
        try {
          return await request({ time, random, state, life, timeoutMs: timeoutsMs.peers }, work, () => {
            counts.unreachable++;
            return new PeerUnreachable(new Error('no answer'));
          });
        } catch (error) {
          if (error instanceof NotOwner) counts.notOwner++;
          throw error;
        }
      },
    };
  }
}

function neverAsking(store: CassandraLedgerStore): LedgerStore {
  return new Proxy<LedgerStore>(store, {
    get: (target, name) => {
      if (name === 'stands') return async () => true;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

function actorMeter(counts: Counts): ActorMeter {
  return {
    committed: () => {},
    answered: (result) => {
      if (result === 'replayed') counts.replayed++;
    },
    claimed: () => void counts.claims++,
    fenced: () => void counts.fenced++,
    damaged: () => {},
    unknownOutcome: () => void counts.unknown++,
    activated: () => {},
  };
}

function placementMeter(counts: Counts): PlacementMeter {
  return { moved: () => void counts.moved++, handedOver: () => {}, renewed: () => {}, lost: () => {} };
}
