import type { SimulatedNode, World } from './node.ts';
import { type Fate, healthyWire, type WireState } from './wire.ts';

export type FaultKind = keyof typeof weights;

/** How often each fault is chosen. */
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
};

/** Plans so many faults over a time; each ends by itself. Answers what was planned, in words. */
export function planFaults(world: World, count: number, overMs: number): string[] {
  const planned: string[] = [];
  for (let made = 0; made < count; made++) {
    const kind = world.random.weighted(weights);
    const node = world.random.pick([...world.nodes.values()]);
    const atMs = world.random.between(0, overMs);
    const lastsMs = world.random.pick([100, 300, 800, 1_800]);
    planned.push(`${atMs} ms: ${kind} ${node.id} for ${lastsMs} ms`);
    world.time.after(atMs, () => begin(world, kind, node, lastsMs));
  }
  return planned;
}

/** Everything works again. */
export function heal(world: World): void {
  world.redis.isDown = false;
  for (const node of world.nodes.values()) {
    for (const wire of [...Object.values(node.wires), ...node.peers.values()])
      Object.assign(wire, healthyWire(), { faultRate: 0 });
    node.believesAll = false;
    world.redis.order(node.id, null);
    if (node.life.isOver) node.restart();
    node.life.resume();
    node.life.skewMs = 0;
  }
}

function begin(world: World, kind: FaultKind, node: SimulatedNode, lastsMs: number): void {
  const { random, time, redis } = world;
  const later = (run: () => void) => void time.after(lastsMs, run);
  const change = (wires: readonly WireState[], changed: Partial<WireState>) => {
    for (const wire of wires) Object.assign(wire, changed);
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
        ...Array.from({ length: random.between(1, 2) }, () => random.pick<Fate>(['lost', 'unanswered', 'late'])),
      );
      return;
    case 'late_writes':
      writes.next.push(...Array.from({ length: random.between(2, 10) }, () => 'late' as const));
      return;
    case 'crash': {
      const { life } = node;
      if (life.isOver) return;
      node.crash();
      later(() => {
        if (node.life === life) node.restart();
      });
      return;
    }
    case 'pause': {
      const { life } = node;
      life.pause();
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
      later(() => {
        redis.isDown = false;
      });
      return;
    case 'redis_wiped':
      redis.wipe();
      return;
    case 'clock_jumps':
      node.life.skewMs = random.between(-400, 400);
      return;
    case 'owns_all':
      node.believesAll = true;
      later(() => {
        node.believesAll = false;
      });
      return;
    case 'drain':
      redis.order(node.id, 'draining');
      later(() => redis.order(node.id, null));
      return;
  }
}
