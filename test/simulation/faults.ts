import type { SimulatedNode, World } from './node.ts';
import { damagedEvery } from './proofs.ts';
import { type Fate, healthyWire, type WireState } from './wire.ts';

type FaultKind = keyof typeof weights;

const weights = {
  store_cut: 2,
  store_lossy: 4,
  store_slow: 1,
  next_append: 5,
  late_writes: 3,
  crash: 4,
  pause: 4,
  peers_cut: 3,
  peers_lossy: 3,
  redis_down: 1,
  redis_wiped: 1,
  clock_jumps: 2,
  owns_all: 3,
  drain: 2,
  damaged_rows: 2,
};

/** Nobody may be there to be hit: all nodes are down or paused. */
const againAfterMs = 50;

/**
 * Faults of a run, each of which ends by itself. One counts when it took effect: a process ended or slept, a request
 * met what is wrong with its way. One that has ended without, since nobody came by, is followed by another one.
 */
export class Faults {
  readonly #world: World;
  readonly #effective: string[] = [];
  #beganMs = 0;
  #isOver = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** Those that took effect, in words. */
  get effective(): readonly string[] {
    return this.#effective;
  }

  /** Plans so many over a time. */
  plan(count: number, overMs: number): void {
    const { random, time } = this.#world;
    this.#beganMs = time.now;
    for (let made = 0; made < count; made++) this.#later(random.between(0, overMs));
  }

  /** No new ones. */
  end(): void {
    this.#isOver = true;
  }

  #later(delayMs: number): void {
    this.#world.time.after(delayMs, () => {
      if (!this.#isOver) this.#begin();
    });
  }

  #begin(): void {
    const { random, time, nodes } = this.#world;
    const running = [...nodes.values()].filter(({ life }) => life.isRunning);
    if (running.length === 0) {
      this.#later(againAfterMs);
      return;
    }
    const kind = random.weighted(this.#world.hasCheckpoints ? weights : { ...weights, damaged_rows: 0 });
    const node = random.pick(running);
    const lastsMs = random.pick([100, 300, 800, 1_800]);
    const words = `${time.now - this.#beganMs} ms: ${kind} ${node.id} for ${lastsMs} ms`;
    let isEffective = false;
    begin(this.#world, kind, node, lastsMs, () => {
      if (!isEffective) this.#effective.push(words);
      isEffective = true;
    });
    time.after(lastsMs, () => {
      if (!isEffective) this.#later(0);
    });
  }
}

/** Everything works again. */
export function heal(world: World): void {
  world.redis.isDown = false;
  for (const node of world.nodes.values()) {
    for (const wire of [...Object.values(node.wires), ...node.peers.values()])
      Object.assign(wire, healthyWire(), { faultRate: 0 });
    node.believesAll = null;
    node.damaged = null;
    world.redis.order(node.id, null);
    if (node.life.isOver) node.restart();
    node.life.resume();
    node.life.skewMs = 0;
  }
}

/** Begins a fault of a node that runs. `met` is called when it takes effect. */
function begin(world: World, kind: FaultKind, node: SimulatedNode, lastsMs: number, met: () => void): void {
  const { random, time, redis } = world;
  const later = (run: () => void) => void time.after(lastsMs, run);
  const change = (wires: readonly WireState[], changed: Partial<WireState>) => {
    for (const wire of wires) Object.assign(wire, { ...changed, met });
    later(() => {
      for (const wire of wires) Object.assign(wire, { ...healthyWire(), next: wire.next });
    });
  };
  const { reads, writes, conditional } = node.wires;
  switch (kind) {
    case 'store_cut':
      change([reads, writes, conditional], { cut: true });
      return;
    case 'store_lossy':
      change(random.chance(0.5) ? [reads, writes, conditional] : [writes], { faultRate: 0.4 });
      return;
    case 'store_slow':
      change([reads, writes, conditional], { slowMs: 40 });
      return;
    case 'next_append':
      conditional.next.push(
        ...Array.from({ length: random.between(1, 2) }, () => ({
          fate: random.pick<Fate>(['lost', 'unanswered', 'late']),
          met,
        })),
      );
      return;
    case 'late_writes':
      writes.next.push(...Array.from({ length: random.between(2, 10) }, () => ({ fate: 'late' as const, met })));
      return;
    case 'crash': {
      const { life } = node;
      node.crash();
      met();
      later(() => {
        if (node.life === life && !world.isStopped) node.restart();
      });
      return;
    }
    case 'pause': {
      const { life } = node;
      life.pause();
      met();
      later(() => life.resume());
      return;
    }
    case 'peers_cut':
      change([...node.peers.values()], { cut: true });
      return;
    case 'peers_lossy':
      change([...node.peers.values()], { faultRate: 0.5 });
      return;
    case 'redis_down':
      redis.isDown = true;
      redis.missed = met;
      later(() => {
        redis.isDown = false;
      });
      return;
    case 'redis_wiped':
      if (redis.wipe()) met();
      return;
    case 'clock_jumps':
      node.life.skewMs = random.between(-400, 400);
      if (node.life.skewMs !== 0) met();
      return;
    case 'owns_all':
      node.believesAll = met;
      later(() => {
        node.believesAll = null;
      });
      return;
    case 'damaged_rows':
      node.damaged = { remainder: random.between(0, damagedEvery - 1), met };
      later(() => {
        node.damaged = null;
      });
      return;
    case 'drain':
      redis.order(node.id, 'draining');
      met();
      later(() => redis.order(node.id, null));
      return;
  }
}
